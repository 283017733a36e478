#include "store/sqlite/history_projection.h"

#include <array>
#include <utility>
#include <variant>

#include "store/history_text.h"
#include "store/history_words.h"

namespace bmgpu::store {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string joined(const std::vector<Price>& prices) {
  std::string text;
  for (const Price price : prices) {
    text += (text.empty() ? "" : ",") + std::to_string(price.count());
  }
  return text;
}

void bind_optional(Statement& statement, int parameter, std::optional<std::uint64_t> value) {
  if (value) {
    statement.bind(parameter, *value);
  } else {
    statement.bind_null(parameter);
  }
}

}  // namespace

Result<void> HistoryProjection::prepare() {
  const std::array statements = {
      StatementText{&set_currency_, "UPDATE progress SET currency = ?1"},
      StatementText{&insert_class_, "INSERT OR REPLACE INTO classes VALUES (?1, ?2)"},
      StatementText{&insert_node_, "INSERT OR REPLACE INTO nodes VALUES (?1, ?2)"},
      StatementText{&insert_gpu_, "INSERT OR REPLACE INTO gpus VALUES (?1, ?2, ?3)"},
      StatementText{&select_class_, "SELECT model FROM classes WHERE class_id = ?1"},
      StatementText{&select_gpu_,
                    "SELECT uuid, node_id, ifnull(owner, 0) FROM gpus LEFT JOIN nodes"
                    " USING (node_id) WHERE gpu_id = ?1"},
      StatementText{&select_node_, "SELECT owner FROM nodes WHERE node_id = ?1"},
      StatementText{&select_lease_, "SELECT account, order_id FROM orders WHERE lease_id = ?1"},
      StatementText{&select_quote_, "SELECT account FROM events WHERE quote_id = ?1 LIMIT 1"},
      StatementText{&insert_queued_,
                    "INSERT OR REPLACE INTO orders (order_id, account, gpu, gpus, created_ms,"
                    " restart, currency) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      StatementText{&close_order_,
                    "INSERT INTO orders (order_id, account, reason, created_ms, start_ms, end_ms,"
                    " ended_sequence, currency) VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)"
                    " ON CONFLICT DO UPDATE SET reason = ?3, start_ms = ?4, end_ms = ?4,"
                    " ended_sequence = ?5"},
      StatementText{&insert_lease_,
                    "INSERT INTO orders (order_id, lease_id, account, gpu, gpus, node_id,"
                    " gpu_uuids, created_ms, start_ms, end_ms, quoted_micros, attempt, restart,"
                    " slot_prices, currency)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
                    " ON CONFLICT DO UPDATE SET lease_id = ?2, gpu = ?4, gpus = ?5, node_id = ?6,"
                    " gpu_uuids = ?7, start_ms = ?9, end_ms = ?10, quoted_micros = ?11,"
                    " attempt = ?12, restart = ?13, slot_prices = ?14, currency = ?15"},
      StatementText{&start_lease_, "UPDATE orders SET attempt = ?2 WHERE lease_id = ?1"},
      StatementText{&move_lease_,
                    "UPDATE orders SET node_id = ?2, gpu_uuids = ?3 WHERE lease_id = ?1"},
      StatementText{&extend_lease_,
                    "UPDATE orders SET end_ms = ?2, slot_prices = ?3, quoted_micros = ?4"
                    " WHERE lease_id = ?1"},
      StatementText{&end_lease_,
                    "INSERT INTO orders (order_id, lease_id, account, created_ms, start_ms, end_ms,"
                    " billed_from_ms, billed_ms, quoted_micros, charged_micros, reason, detail,"
                    " exit_code, ended_sequence, currency)"
                    " VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
                    " ON CONFLICT DO UPDATE SET end_ms = ?4, billed_from_ms = ?5, billed_ms = ?6,"
                    " quoted_micros = ?7, charged_micros = ?8, reason = ?9, detail = ?10,"
                    " exit_code = ?11, ended_sequence = ?12"},
      StatementText{&insert_event_,
                    "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
  };
  if (Result<void> prepared = prepare_all(database_, statements); !prepared) {
    return prepared;
  }
  Result<std::string> currency = database_.text_of("SELECT currency FROM progress");
  if (!currency) {
    return currency.error();
  }
  currency_ = std::move(*currency);
  return {};
}

Result<void> HistoryProjection::project(const Recorded& recorded) {
  return std::visit(Overloaded{
                        [&](const core::PolicySet& event) { return on(event); },
                        [&](const core::ClassDefined& event) { return on(event); },
                        [&](const core::NodeRegistered& event) { return on(event); },
                        [&](const core::OrderQueued& event) { return on(event); },
                        [&](const core::OrderClosed& event) { return on(event, recorded); },
                        [&](const core::LeaseGranted& event) { return on(event, recorded); },
                        [&](const core::LeaseStarted& event) { return on(event); },
                        [&](const core::LeaseMoved& event) { return on(event); },
                        [&](const core::JobGiven& event) { return on(event); },
                        [&](const core::LeaseExtended& event) { return on(event); },
                        [&](const core::LeaseEnded& event) { return on(event, recorded); },
                        [](const auto&) { return Result<void>(); },
                    },
                    recorded.event);
}

Result<void> HistoryProjection::on(const core::PolicySet& event) {
  currency_ = event.policy.currency;
  return set_currency_.bind_text(1, currency_).run();
}

Result<void> HistoryProjection::on(const core::ClassDefined& event) {
  return insert_class_.bind(1, event.id.value()).bind_text(2, event.spec.model).run();
}

Result<void> HistoryProjection::on(const core::NodeRegistered& event) {
  Result<void> done = insert_node_.bind(1, event.node.value()).bind(2, event.owner.value()).run();
  for (const core::RegisteredGpu& gpu : event.gpus) {
    if (done) {
      done = insert_gpu_.bind(1, gpu.id.value())
                 .bind(2, event.node.value())
                 .bind_text(3, gpu.uuid)
                 .run();
    }
  }
  return done;
}

Result<void> HistoryProjection::on(const core::OrderQueued& event) {
  const core::Order& order = event.order;
  const std::string restart = word_of(order.restart);
  return insert_queued_.bind(1, order.id.value())
      .bind(2, order.tenant.value())
      .bind_text(3, order.resources.gpu_words)
      .bind(4, order.resources.gpus)
      .bind(5, order.placed.unix_ms())
      .bind_text(6, restart)
      .bind_text(7, currency_)
      .run();
}

Result<void> HistoryProjection::on(const core::OrderClosed& event, const Recorded& recorded) {
  const std::string reason = word_of(event.reason);
  return close_order_.bind(1, event.id.value())
      .bind(2, event.tenant.value())
      .bind_text(3, reason)
      .bind(4, recorded.at.unix_ms())
      .bind(5, recorded.sequence.value())
      .bind_text(6, currency_)
      .run();
}

Result<void> HistoryProjection::on(const core::LeaseGranted& event, const Recorded& recorded) {
  const core::Lease& lease = event.lease;
  const Result<std::string> model = model_of(lease.gpu_class);
  if (!model) {
    return model.error();
  }
  const auto ranks = lease.allocations.empty() ? std::vector<core::RankPlacement>()
                                               : lease.allocations.back().ranks;
  const Result<std::string> uuids = uuids_of(ranks);
  if (!uuids) {
    return uuids.error();
  }
  const NodeId node = ranks.empty() ? NodeId() : ranks[0].node;
  const AttemptNumber attempt = lease.attempts.empty() ? AttemptNumber() : lease.attempts[0].number;
  const std::string restart = word_of(lease.restart);
  const std::string prices = joined(lease.slot_prices);
  return insert_lease_.bind(1, lease.order.value())
      .bind(2, lease.id.value())
      .bind(3, lease.tenant.value())
      .bind_text(4, *model)
      .bind(5, lease.gpus)
      .bind(6, node.value())
      .bind_text(7, *uuids)
      .bind(8, recorded.at.unix_ms())
      .bind(9, lease.start.unix_ms())
      .bind(10, lease.end.unix_ms())
      .bind(11, lease.quoted.count())
      .bind(12, attempt.value())
      .bind_text(13, restart)
      .bind_text(14, prices)
      .bind_text(15, currency_)
      .run();
}

Result<void> HistoryProjection::note_attempt(LeaseId lease,
                                             const std::vector<core::Attempt>& attempts) {
  const AttemptNumber attempt = attempts.empty() ? AttemptNumber() : attempts[0].number;
  return start_lease_.bind(1, lease.value()).bind(2, attempt.value()).run();
}

Result<void> HistoryProjection::on(const core::LeaseStarted& event) {
  return note_attempt(event.id, event.attempts);
}

Result<void> HistoryProjection::on(const core::JobGiven& event) {
  return note_attempt(event.id, event.attempts);
}

Result<void> HistoryProjection::on(const core::LeaseMoved& event) {
  const Result<std::string> uuids = uuids_of(event.ranks);
  if (!uuids) {
    return uuids.error();
  }
  const NodeId node = event.ranks.empty() ? NodeId() : event.ranks[0].node;
  return move_lease_.bind(1, event.id.value()).bind(2, node.value()).bind_text(3, *uuids).run();
}

Result<void> HistoryProjection::on(const core::LeaseExtended& event) {
  const std::string prices = joined(event.slot_prices);
  return extend_lease_.bind(1, event.id.value())
      .bind(2, event.end.unix_ms())
      .bind_text(3, prices)
      .bind(4, event.quoted.count())
      .run();
}

Result<void> HistoryProjection::on(const core::LeaseEnded& event, const Recorded& recorded) {
  const std::string reason = word_of(event.reason);
  end_lease_.bind(1, event.order.value())
      .bind(2, event.id.value())
      .bind(3, event.tenant.value())
      .bind(4, event.at.unix_ms())
      .bind(6, event.billed.count())
      .bind(7, event.quoted.count())
      .bind(8, event.charged.count())
      .bind_text(9, reason)
      .bind_text(10, event.detail)
      .bind(12, recorded.sequence.value())
      .bind_text(13, currency_);
  if (event.billed_from) {
    end_lease_.bind(5, event.billed_from->unix_ms());
  } else {
    end_lease_.bind_null(5);
  }
  if (event.exit_code) {
    end_lease_.bind(11, std::int64_t{*event.exit_code});
  } else {
    end_lease_.bind_null(11);
  }
  return end_lease_.run();
}

Result<std::string> HistoryProjection::model_of(ClassId gpu_class) {
  Query query(select_class_);
  const Result<bool> row = select_class_.bind(1, gpu_class.value()).step();
  if (!row) {
    return row.error();
  }
  return *row ? select_class_.text(0) : std::string();
}

Result<std::string> HistoryProjection::uuids_of(const std::vector<core::RankPlacement>& ranks) {
  std::string uuids;
  for (const core::RankPlacement& rank : ranks) {
    for (const core::Item& item : rank.items) {
      Query query(select_gpu_);
      const Result<bool> row = select_gpu_.bind(1, item.gpu.value()).step();
      if (!row) {
        return row.error();
      }
      if (*row) {
        uuids += (uuids.empty() ? "" : ",") + select_gpu_.text(0);
      }
    }
  }
  return uuids;
}

Result<void> HistoryProjection::note(const Recorded& recorded) {
  if (!is_in_timeline(recorded.event)) {
    return {};
  }
  const Result<Owners> belongs = owners(recorded.event);
  if (!belongs) {
    return belongs.error();
  }
  const std::string subject = subject_of(recorded.event);
  const std::string text = describe(recorded.event, currency_);
  insert_event_.bind(1, recorded.sequence.value())
      .bind(2, recorded.at.unix_ms())
      .bind_text(3, kind_name(recorded.event))
      .bind_text(4, subject)
      .bind(5, belongs->account.value())
      .bind_text(9, text);
  bind_optional(insert_event_, 6, belongs->order);
  bind_optional(insert_event_, 7, belongs->node);
  bind_optional(insert_event_, 8, belongs->quote);
  return insert_event_.run();
}

Result<HistoryProjection::Owners> HistoryProjection::owners(const core::Event& event) {
  using R = Result<Owners>;
  const auto of_order = [](AccountId account, OrderId order) {
    return R(Owners{account, order.value(), {}, {}});
  };
  return std::visit(
      Overloaded{
          [&](const core::NodeRegistered& e) { return owners_of_node(e.node); },
          [&](const core::NodeReadyChanged& e) { return owners_of_node(e.node); },
          [&](const core::NodeListingChanged& e) { return owners_of_node(e.node); },
          [&](const core::NodeLeftSupply& e) { return owners_of_node(e.node); },
          [&](const core::NodeLost& e) { return owners_of_node(e.node); },
          [&](const core::NodeRemoved& e) { return owners_of_node(e.node); },
          [&](const core::GpuStateChanged& e) { return owners_of_gpu(e.gpu); },
          [&](const core::QuoteIssued& e) {
            return R(Owners{e.quote.tenant, {}, {}, e.quote.id.value()});
          },
          [&](const core::QuoteClosed& e) { return owners_of_quote(e.id); },
          [&](const core::OrderQueued& e) { return of_order(e.order.tenant, e.order.id); },
          [&](const core::OrderClosed& e) { return of_order(e.tenant, e.id); },
          [&](const core::LeaseGranted& e) { return of_order(e.lease.tenant, e.lease.order); },
          [&](const core::LeaseRunning& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseStarted& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseMoved& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseDelayed& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseCancelled& e) { return owners_of_lease(e.id); },
          [&](const core::JobGiven& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseExtended& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseEnding& e) { return owners_of_lease(e.id); },
          [&](const core::LeaseEnded& e) { return of_order(e.tenant, e.order); },
          [](const auto&) { return R(Owners()); },
      },
      event);
}

Result<HistoryProjection::Owners> HistoryProjection::owners_of_lease(LeaseId lease) {
  Query query(select_lease_);
  const Result<bool> row = select_lease_.bind(1, lease.value()).step();
  if (!row) {
    return row.error();
  }
  return *row ? Owners{AccountId(select_lease_.id(0)), select_lease_.id(1), {}, {}} : Owners();
}

Result<HistoryProjection::Owners> HistoryProjection::owners_of_node(NodeId node) {
  Query query(select_node_);
  const Result<bool> row = select_node_.bind(1, node.value()).step();
  if (!row) {
    return row.error();
  }
  return Owners{*row ? AccountId(select_node_.id(0)) : AccountId(), {}, node.value(), {}};
}

Result<HistoryProjection::Owners> HistoryProjection::owners_of_gpu(GpuId gpu) {
  Query query(select_gpu_);
  const Result<bool> row = select_gpu_.bind(1, gpu.value()).step();
  if (!row) {
    return row.error();
  }
  return *row ? Owners{AccountId(select_gpu_.id(2)), {}, select_gpu_.id(1), {}} : Owners();
}

Result<HistoryProjection::Owners> HistoryProjection::owners_of_quote(QuoteId quote) {
  Query query(select_quote_);
  const Result<bool> row = select_quote_.bind(1, quote.value()).step();
  if (!row) {
    return row.error();
  }
  return Owners{*row ? AccountId(select_quote_.id(0)) : AccountId(), {}, {}, quote.value()};
}

}  // namespace bmgpu::store
