/**
 * The compiler version of the log. A release with a higher number raises it at its start; an operator who returns to an older
 * release lowers it. This release's number is in `kernel/release.ts`. Implements `docs/contract/domain.md#generation`.
 */
import { err, ok } from '../../kernel/result.js';
import { eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { FleetEventDeclaration, Singleton } from '../resource/declaration.js';
import type { FleetView, SingletonKey } from '../resource/fleet-view.js';
import type { Decision } from '../resource/refusal.js';

interface VersionData {
  readonly version: { readonly from: number; readonly to: number };
}

type CompilerEvent =
  | { readonly type: 'CompilerVersionRaised'; readonly data: VersionData }
  | { readonly type: 'CompilerVersionLowered'; readonly data: VersionData };

type CompilerCommand =
  | { readonly type: 'RaiseCompilerVersion'; readonly version: number }
  | { readonly type: 'LowerCompilerVersion'; readonly version: number };

const compilerKey: SingletonKey<number> = { singleton: 'service' };

function raise(fleet: FleetView, to: number): Decision<CompilerEvent> {
  const from = fleet.singleton(compilerKey);
  return ok(to <= from ? [] : [{ type: 'CompilerVersionRaised', data: { version: { from, to } } }]);
}

/** 0 is refused: it stands for a log that no release has compiled yet. */
function lower(fleet: FleetView, to: number): Decision<CompilerEvent> {
  const from = fleet.singleton(compilerKey);
  if (!Number.isSafeInteger(to) || to < 1) {
    return err({ code: 'invalid_request', message: `version: expected a whole number from 1, got ${to}` });
  }
  if (to >= from) {
    return err({ code: 'conflict', message: `the log is at compiler version ${from}, and ${to} is not lower` });
  }
  return ok([{ type: 'CompilerVersionLowered', data: { version: { from, to } } }]);
}

/** Touches every node, so each gets a new generation. */
const changed: FleetEventDeclaration<CompilerEvent> = {
  audit: ({ data }) =>
    eventAudit(
      'update',
      fieldChanges({ compiler_version: data.version }),
      'the compiler version follows the release that runs',
    ),
  undo: null,
  touches: (fleet) => [...fleet.ids('node')],
};

export const compiler: Singleton<'service', number, CompilerEvent, CompilerCommand> = {
  type: 'service',
  id: 'compiler',
  initial: 0,
  decide: {
    RaiseCompilerVersion: (fleet, { version }) => raise(fleet, version),
    LowerCompilerVersion: (fleet, { version }) => lower(fleet, version),
  },
  evolve: (_state, { data }) => data.version.to,
  events: { CompilerVersionRaised: changed, CompilerVersionLowered: changed },
};
