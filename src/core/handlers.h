// decide() by kind of command: one file each. Private to core.
//
// A handler sees a stamp whose time does not run backwards and returns events and an answer;
// requests follow from the events (decide.cc).
#pragma once

#include "core/core.h"

namespace bmgpu::core {

Decision handle(const State& state, const Stamp& stamp, const SetPolicy& command);
Decision handle(const State& state, const Stamp& stamp, const DrainNode& command);
Decision handle(const State& state, const Stamp& stamp, const ResumeNode& command);
Decision handle(const State& state, const Stamp& stamp, const RemoveNode& command);
Decision handle(const State& state, const Stamp& stamp, const RegisterNode& command);
Decision handle(const State& state, const Stamp& stamp, const SetNodeReady& command);
Decision handle(const State& state, const Stamp& stamp, const RenewNode& command);
Decision handle(const State& state, const Stamp& stamp, const DeclareNodeLost& command);
Decision handle(const State& state, const Stamp& stamp, const ReportGpu& command);
Decision handle(const State& state, const Stamp& stamp, const ReportAttemptRunning& command);
Decision handle(const State& state, const Stamp& stamp, const ReportAttemptEnded& command);
Decision handle(const State& state, const Stamp& stamp, const RequestQuote& command);
Decision handle(const State& state, const Stamp& stamp, const PlaceOrder& command);
Decision handle(const State& state, const Stamp& stamp, const StopOrder& command);
Decision handle(const State& state, const Stamp& stamp, const ExtendLease& command);
Decision handle(const State& state, const Stamp& stamp, const SetDemandCurve& command);
Decision handle(const State& state, const Stamp& stamp, const GiveJob& command);
Decision handle(const State& state, const Stamp& stamp, const Tick& command);

Decision done();
Decision done(Event event);
Decision refused(ReasonCode code, std::string detail);
Decision refused(Reason reason);

}  // namespace bmgpu::core
