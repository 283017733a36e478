#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "store/history_words.h"
#include "store/sqlite/history_tables.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite_history.h"

namespace bmgpu::store {
namespace {

constexpr const char* kOrders =
    "SELECT order_id, lease_id, account, gpu, gpus, node_id, gpu_uuids, created_ms, start_ms,"
    " end_ms, billed_from_ms, billed_ms, quoted_micros, charged_micros, reason, detail, exit_code,"
    " attempt, restart, slot_prices, currency, ended_sequence FROM orders WHERE ";
constexpr const char* kEvents =
    "SELECT sequence, at_ms, kind, subject, account, text FROM events WHERE sequence > ?1"
    " AND (?2 = 0 OR account = ?2)";

std::vector<std::string> split(const std::string& joined) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from < joined.size()) {
    const std::size_t comma = std::min(joined.find(',', from), joined.size());
    parts.push_back(joined.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

std::optional<std::vector<Price>> prices_of(const std::string& joined) {
  std::vector<Price> prices;
  for (const std::string& part : split(joined)) {
    std::int64_t micros = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), micros);
    if (error != std::errc() || end != part.data() + part.size()) {
      return std::nullopt;
    }
    prices.push_back(Price(micros));
  }
  return prices;
}

class SqliteHistoryReader final : public HistoryReader {
 public:
  explicit SqliteHistoryReader(std::unique_ptr<Database> database)
      : database_(std::move(database)) {}

  Result<void> prepare();

  Result<Sequence> applied() override;
  Result<std::vector<HistoryEvent>> events(const EventQuery& query) override;
  Result<std::vector<HistoryOrder>> ended_orders(AccountId account, std::size_t limit) override;
  Result<std::optional<HistoryOrder>> find_order(OrderId order) override {
    return find(select_order_, order.value());
  }
  Result<std::optional<HistoryOrder>> find_lease(LeaseId lease) override {
    return find(select_lease_, lease.value());
  }

 private:
  struct EventStatements {
    Statement of_all, of_account, of_order, of_lease, of_node, of_quote;
  };
  Result<void> prepare_events(EventStatements& statements, const std::string& order);
  static Statement& choose(EventStatements& statements, const EventQuery& query);
  Result<std::optional<HistoryOrder>> find(Statement& statement, std::uint64_t id);
  Result<HistoryOrder> read_order(Statement& row) const;

  std::unique_ptr<Database> database_;
  Statement select_applied_;
  EventStatements first_events_, newest_events_;
  Statement ended_of_all_, ended_of_account_, select_order_, select_lease_;
};

Result<void> SqliteHistoryReader::prepare() {
  const std::string orders(kOrders);
  const std::string ended = "ended_sequence IS NOT NULL";
  const std::array<std::pair<Statement*, std::string>, 5> statements = {{
      {&select_applied_, "SELECT applied FROM progress"},
      {&ended_of_all_, orders + ended + " ORDER BY ended_sequence DESC LIMIT ?2"},
      {&ended_of_account_,
       orders + ended + " AND account = ?1 ORDER BY ended_sequence DESC LIMIT ?2"},
      {&select_order_, orders + ended + " AND order_id = ?1"},
      {&select_lease_, orders + ended + " AND lease_id = ?1"},
  }};
  for (const auto& [statement, sql] : statements) {
    const std::array one = {StatementText{statement, sql}};
    if (Result<void> prepared = prepare_all(*database_, one); !prepared) {
      return prepared;
    }
  }
  Result<void> prepared = prepare_events(first_events_, "ASC");
  return prepared ? prepare_events(newest_events_, "DESC") : prepared;
}

Result<void> SqliteHistoryReader::prepare_events(EventStatements& statements,
                                                 const std::string& order) {
  const std::string events(kEvents);
  const std::string in_order = " ORDER BY sequence " + order + " LIMIT ?3";
  const std::array<std::pair<Statement*, std::string>, 6> all = {{
      {&statements.of_all, events + in_order},
      {&statements.of_account, events + " AND account = ?2" + in_order},
      {&statements.of_order, events + " AND order_id = ?4" + in_order},
      {&statements.of_lease,
       events + " AND order_id = (SELECT order_id FROM orders WHERE lease_id = ?4)" + in_order},
      {&statements.of_node, events + " AND node_id = ?4" + in_order},
      {&statements.of_quote, events + " AND quote_id = ?4" + in_order},
  }};
  for (const auto& [statement, sql] : all) {
    const std::array one = {StatementText{statement, sql}};
    if (Result<void> prepared = prepare_all(*database_, one); !prepared) {
      return prepared;
    }
  }
  return {};
}

Result<Sequence> SqliteHistoryReader::applied() {
  Query query(select_applied_);
  const Result<bool> row = select_applied_.step();
  if (!row) {
    return row.error();
  }
  return *row ? Sequence(select_applied_.id(0)) : Sequence();
}

Statement& SqliteHistoryReader::choose(EventStatements& statements, const EventQuery& query) {
  struct Choose {
    EventStatements& events;
    AccountId account;

    Statement& of(Statement& statement, std::uint64_t id) const { return statement.bind(4, id); }
    Statement& operator()(std::monostate) const {
      return account.is_none() ? events.of_all : events.of_account;
    }
    Statement& operator()(OrderId id) const { return of(events.of_order, id.value()); }
    Statement& operator()(LeaseId id) const { return of(events.of_lease, id.value()); }
    Statement& operator()(NodeId id) const { return of(events.of_node, id.value()); }
    Statement& operator()(QuoteId id) const { return of(events.of_quote, id.value()); }
  };
  return std::visit(Choose{statements, query.account}, query.subject);
}

Result<std::vector<HistoryEvent>> SqliteHistoryReader::events(const EventQuery& query) {
  Statement& rows = choose(query.after ? first_events_ : newest_events_, query);
  Query open(rows);
  rows.bind(1, query.after.value_or(Sequence()).value())
      .bind(2, query.account.value())
      .bind(3, std::uint64_t{std::min(query.limit, kHistoryRowsMax)});
  std::vector<HistoryEvent> found;
  for (;;) {
    const Result<bool> row = rows.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      break;
    }
    found.push_back({Sequence(rows.id(0)), Instant(rows.number(1)), rows.text(2), rows.text(3),
                     AccountId(rows.id(4)), rows.text(5)});
  }
  if (!query.after) {
    std::reverse(found.begin(), found.end());
  }
  return found;
}

Result<std::vector<HistoryOrder>> SqliteHistoryReader::ended_orders(AccountId account,
                                                                    std::size_t limit) {
  Statement& rows = account.is_none() ? ended_of_all_ : ended_of_account_;
  Query open(rows);
  rows.bind(2, std::uint64_t{std::min(limit, kHistoryRowsMax)});
  if (!account.is_none()) {
    rows.bind(1, account.value());
  }
  std::vector<HistoryOrder> found;
  for (;;) {
    const Result<bool> row = rows.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      return found;
    }
    Result<HistoryOrder> order = read_order(rows);
    if (!order) {
      return order.error();
    }
    found.push_back(std::move(*order));
  }
}

Result<std::optional<HistoryOrder>> SqliteHistoryReader::find(Statement& statement,
                                                              std::uint64_t id) {
  if (id == 0) {
    return std::optional<HistoryOrder>();  // what orders without a lease have in its place
  }
  Query query(statement);
  const Result<bool> row = statement.bind(1, id).step();
  if (!row) {
    return row.error();
  }
  if (!*row) {
    return std::optional<HistoryOrder>();
  }
  Result<HistoryOrder> order = read_order(statement);
  if (!order) {
    return order.error();
  }
  return std::optional(std::move(*order));
}

Result<HistoryOrder> SqliteHistoryReader::read_order(Statement& row) const {
  HistoryOrder order;
  order.order = OrderId(row.id(0));
  order.lease = LeaseId(row.id(1));
  order.account = AccountId(row.id(2));
  order.gpu = row.text(3);
  order.gpus = row.number(4);
  order.node = NodeId(row.id(5));
  order.gpu_uuids = split(row.text(6));
  order.created = Instant(row.number(7));
  order.start = Instant(row.number(8));
  order.end = Instant(row.number(9));
  if (!row.is_null(10)) {
    order.billed_from = Instant(row.number(10));
  }
  order.billed = milliseconds(row.number(11));
  order.quoted = Money(row.number(12));
  order.charged = Money(row.number(13));
  const std::optional<core::EndReason> reason = end_reason_of(row.text(14));
  order.detail = row.text(15);
  if (!row.is_null(16)) {
    order.exit_code = static_cast<std::int32_t>(row.number(16));
  }
  order.attempt = AttemptNumber(row.id(17));
  const std::optional<core::RestartPolicy> restart = restart_policy_of(row.text(18));
  std::optional<std::vector<Price>> prices = prices_of(row.text(19));
  order.currency = row.text(20);
  order.ended_sequence = Sequence(row.id(21));
  if (!reason || !restart || !prices) {
    return damaged(*database_, "the order " + std::to_string(order.order.value()));
  }
  order.reason = *reason;
  order.restart = *restart;
  order.slot_prices = std::move(*prices);
  return order;
}

}  // namespace

Result<std::unique_ptr<HistoryReader>> open_history_reader(const std::string& path) {
  Result<std::unique_ptr<Database>> database = Database::open(path, Access::Reader);
  if (!database) {
    return database.error();
  }
  auto history = std::make_unique<SqliteHistoryReader>(std::move(*database));
  if (Result<void> ready = history->prepare(); !ready) {
    return ready.error();
  }
  return std::unique_ptr<HistoryReader>(std::move(history));
}

}  // namespace bmgpu::store
