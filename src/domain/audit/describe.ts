/**
 * A command as an audit entry: what was done to which resource, and which fields changed, secrets masked.
 * Pure: the audit read model holds positions only and comes here with the events. Implements `docs/contract/rest.md#audit`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import { unreachable } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import type { AccountEvent } from '../accounts/user.js';
import type { SigninEvent } from '../agents/facts.js';
import type { Changes } from '../resource/change.js';
import type { FleetEvent } from '../fleet/events.js';
import { accountEvent, fleetEvent, signinEvent } from '../log/upcast.js';

export interface AuditChange {
  readonly path: string;
  readonly before: Json;
  readonly after: Json;
}

export interface AuditDescription {
  /** `<resource type>.<verb>`. */
  readonly action: string;
  readonly resource: {
    readonly type: string;
    readonly id: string | null;
    /** null where the events do not tell it: the name then is the one last known. */
    readonly name: string | null;
  };
  readonly changes: readonly AuditChange[];
  /** About users and sign-ins: shown to admins only. */
  readonly accounts: boolean;
  readonly notRevertibleBecause: string | null;
}

/** What stands for a secret. */
export const masked = '***';

/** The entry of a command, or null for facts that are none (`svc-agents-*`, `svc-service`). */
export function describeCommand(command: RecordedCommand): AuditDescription | null {
  const [first] = command.events;
  if (command.stream === streams.fleet) {
    const described = describeFleet(fleetEvent(first));
    const more = command.events.slice(1).flatMap((event) => describeFleet(fleetEvent(event)).changes);
    return { ...described, changes: [...described.changes, ...more], accounts: false };
  }
  if (command.stream === streams.accounts) return { ...describeAccount(accountEvent(first)), accounts: true };
  if (command.stream === streams.signins) return { ...describeSignin(signinEvent(first)), accounts: true };
  return null;
}

type Description = Omit<AuditDescription, 'accounts'>;

const fieldChanges = (changes: Changes): readonly AuditChange[] =>
  Object.entries(changes).map(([path, { from, to }]) => ({ path, before: from, after: to }));

const appeared = (fields: object): readonly AuditChange[] =>
  flat(fields).map(([path, after]) => ({ path, before: null, after }));

const vanished = (fields: object): readonly AuditChange[] =>
  flat(fields).map(([path, before]) => ({ path, before, after: null }));

/** One entry per field; labels one per key. */
function flat(fields: object): readonly [string, Json][] {
  return Object.entries(fields).flatMap(([field, value]): [string, Json][] =>
    field === 'labels'
      ? Object.entries(value as { readonly [key: string]: string }).map(([key, label]) => [`labels.${key}`, label])
      : [[field, value as Json]],
  );
}

function describeFleet(event: FleetEvent): Description {
  switch (event.type) {
    case 'NodeCreated': {
      const { node_id, ...fields } = event.data;
      return entry('node', 'create', node_id, fields.name, appeared(fields));
    }
    case 'NodeUpdated':
      return entry('node', 'update', event.data.node_id, newName(event.data.changes), fieldChanges(event.data.changes));
    case 'NodeDeleted': {
      const { node_id, override: _override, generation_offset: _offset, ...fields } = event.data;
      return entry('node', 'delete', node_id, fields.name, vanished(fields));
    }
    case 'NodePskIssued': {
      const changes = [
        { path: 'control_psk', before: null, after: masked },
        { path: 'psk_fingerprint', before: null, after: event.data.fingerprint },
      ];
      return entry(
        'node',
        'psk',
        event.data.node_id,
        null,
        changes,
        'a PSK can be replaced by a new one, not taken back',
      );
    }
    case 'NodeConfigRefreshed':
      return entry('node', 'refresh', event.data.node_id, null, [], 'a refresh changes nothing that could be undone');
    case 'NodeReportedAddressChanged': {
      const { node_id, public_ipv4, public_ipv6 } = event.data;
      const changes = fieldChanges({ public_ipv4, public_ipv6 }).filter(({ before, after }) => before !== after);
      return entry('node', 'update', node_id, null, changes, 'it is a fact reported by the agent');
    }
    case 'NodeGenerationRaised': {
      const changes = fieldChanges({ generation_offset: event.data.offset });
      return entry('node', 'refresh', event.data.node_id, null, changes, 'it is a fact reported by the agent');
    }
    case 'NodeCommandQueued': {
      const changes = [{ path: 'command', before: null, after: event.data.command }];
      return entry(
        'node',
        'command',
        event.data.node_id,
        null,
        changes,
        'a command to an agent can not be called back',
      );
    }
    case 'UpstreamCreated': {
      const { upstream_id, ...fields } = event.data;
      return entry('l4_upstream', 'create', upstream_id, fields.name, appeared(fields));
    }
    case 'UpstreamUpdated':
      return entry('l4_upstream', 'update', event.data.upstream_id, null, fieldChanges(event.data.changes));
    case 'UpstreamDeleted': {
      const { upstream_id, ...fields } = event.data;
      return entry('l4_upstream', 'delete', upstream_id, fields.name, vanished(fields));
    }
    case 'ChainCreated': {
      const { chain_id, ...fields } = event.data;
      return entry('l4_chain', 'create', chain_id, fields.name, appeared(fields));
    }
    case 'ChainUpdated':
      return entry(
        'l4_chain',
        'update',
        event.data.chain_id,
        newName(event.data.changes),
        chainChanges(event.data.changes),
      );
    case 'ChainDeleted': {
      const { chain_id, deployed: _, ...fields } = event.data;
      return entry('l4_chain', 'delete', chain_id, fields.name, vanished(fields));
    }
    case 'ChainDeployed': {
      const { from, to } = event.data.definition;
      const changes = (['payload', 'hops', 'target'] as const).map((field) => ({
        path: field,
        before: (from?.[field] ?? null) as Json,
        after: (to?.[field] ?? null) as Json,
      }));
      const changed = changes.filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after));
      return entry('l4_chain', 'deploy', event.data.chain_id, null, changed);
    }
    case 'ConnectivityUpdated':
      return entry('connectivity', 'update', 'connectivity', 'connectivity', fieldChanges(event.data.changes));
    case 'CompilerVersionRaised':
    case 'CompilerVersionLowered': {
      const changes = fieldChanges({ compiler_version: event.data.version });
      const reason = 'the compiler version follows the release that runs';
      return entry('service', 'update', 'compiler', 'compiler', changes, reason);
    }
    default:
      return unreachable(event);
  }
}

function entry(
  type: string,
  verb: string,
  id: string | null,
  name: string | null,
  changes: readonly AuditChange[],
  notRevertibleBecause: string | null = null,
): Description {
  return { action: `${type}.${verb}`, resource: { type, id, name }, changes, notRevertibleBecause };
}

function newName(changes: Changes): string | null {
  const to = changes['name']?.to;
  return typeof to === 'string' ? to : null;
}

/** A list of the same length shows the fields of its entries, `hops[0].listen_port`; else it changed as a whole. */
function chainChanges(changes: Changes): readonly AuditChange[] {
  return fieldChanges(changes).flatMap((change) => {
    const { path, before, after } = change;
    if (path !== 'hops' || !Array.isArray(before) || !Array.isArray(after) || before.length !== after.length)
      return [change];
    return before.flatMap((hop: Json, index) => {
      const [from, to] = [hop as { readonly [k: string]: Json }, after[index] as { readonly [k: string]: Json }];
      const fields = [...new Set([...Object.keys(from), ...Object.keys(to)])];
      return fields
        .filter((field) => JSON.stringify(from[field]) !== JSON.stringify(to[field]))
        .map((field) => ({ path: `hops[${index}].${field}`, before: from[field] ?? null, after: to[field] ?? null }));
    });
  });
}

function describeAccount(event: AccountEvent): Description {
  switch (event.type) {
    case 'UserCreated': {
      const { user_id, username, role } = event.data;
      const changes = [
        { path: 'username', before: null, after: username },
        { path: 'role', before: null, after: role },
        { path: 'password', before: null, after: masked },
      ];
      return entry('user', 'create', user_id, username, changes, 'users are not deleted');
    }
    case 'UserProfileUpdated': {
      const changes = Object.keys(event.data.changes).map((path) => ({ path, before: masked, after: masked }));
      return entry('user', 'update', event.data.user_id, null, changes);
    }
    case 'UserPasswordChanged': {
      const changes = [{ path: 'password', before: masked, after: masked }];
      return entry('user', 'update', event.data.user_id, null, changes, 'a password can be replaced, not taken back');
    }
    default:
      return unreachable(event);
  }
}

function describeSignin(event: SigninEvent): Description {
  const { user_id, username } = event.data;
  const changes = [{ path: 'address', before: null, after: event.data.address }];
  const verb = event.type === 'SignedIn' ? 'sign_in' : 'sign_in_refused';
  return entry('session', verb, user_id, username, changes, 'a sign-in is a fact');
}
