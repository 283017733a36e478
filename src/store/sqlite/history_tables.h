// The tables of the history, and the rows that both its writer and its reader know. Private to
// src/store/sqlite.
#pragma once

#include <array>

#include "store/history.h"
#include "store/sqlite/database.h"

namespace bmgpu::store {

// Lists are text, so that people's tools can read every column: ids of GPUs and prices are joined
// by commas. A live order has no ended_sequence.
inline constexpr std::array kHistorySteps = {
    "CREATE TABLE progress (applied INTEGER NOT NULL, currency TEXT NOT NULL);"
    "INSERT INTO progress VALUES (0, '');"
    "CREATE TABLE classes (class_id INTEGER PRIMARY KEY, model TEXT NOT NULL);"
    "CREATE TABLE nodes (node_id INTEGER PRIMARY KEY, owner INTEGER NOT NULL);"
    "CREATE TABLE gpus (gpu_id INTEGER PRIMARY KEY, node_id INTEGER NOT NULL, uuid TEXT NOT NULL);"
    "CREATE TABLE events (sequence INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL, subject TEXT NOT NULL, account INTEGER NOT NULL, order_id INTEGER,"
    " node_id INTEGER, quote_id INTEGER, text TEXT NOT NULL);"
    "CREATE INDEX events_by_account ON events (account);"
    "CREATE INDEX events_by_order ON events (order_id) WHERE order_id IS NOT NULL;"
    "CREATE INDEX events_by_node ON events (node_id) WHERE node_id IS NOT NULL;"
    "CREATE INDEX events_by_quote ON events (quote_id) WHERE quote_id IS NOT NULL;"
    "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, lease_id INTEGER NOT NULL DEFAULT 0,"
    " account INTEGER NOT NULL, gpu TEXT NOT NULL DEFAULT '', gpus INTEGER NOT NULL DEFAULT 0,"
    " node_id INTEGER NOT NULL DEFAULT 0, gpu_uuids TEXT NOT NULL DEFAULT '',"
    " created_ms INTEGER NOT NULL, start_ms INTEGER, end_ms INTEGER, billed_from_ms INTEGER,"
    " billed_ms INTEGER NOT NULL DEFAULT 0, quoted_micros INTEGER NOT NULL DEFAULT 0,"
    " charged_micros INTEGER NOT NULL DEFAULT 0, reason TEXT, detail TEXT NOT NULL DEFAULT '',"
    " exit_code INTEGER, attempt INTEGER NOT NULL DEFAULT 0,"
    " restart TEXT NOT NULL DEFAULT 'host-failure', slot_prices TEXT NOT NULL DEFAULT '',"
    " currency TEXT NOT NULL DEFAULT '', ended_sequence INTEGER);"
    "CREATE INDEX orders_by_lease ON orders (lease_id);"
    "CREATE INDEX orders_ended ON orders (ended_sequence) WHERE ended_sequence IS NOT NULL;"
    "CREATE INDEX orders_ended_by_account ON orders (account, ended_sequence)"
    " WHERE ended_sequence IS NOT NULL;",
};

}  // namespace bmgpu::store
