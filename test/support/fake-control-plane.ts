/**
 * Every port that REST uses, in memory, good enough to hold the REST contract against: versions, If-Match, references,
 * names, idempotency keys, deployments, presence. Not the product: no log, no fold, no projections.
 */
import type {
  Caller,
  ChainState,
  CommandHandlers,
  IfMatch,
  NodeState,
  SettingsState,
  UpstreamState,
  UserView,
} from '../../src/commands/handlers-port.js';
import type { CommandContext, CommandOutcome } from '../../src/commands/port.js';
import { timestamp } from '../../src/kernel/clock.js';
import type { Clock } from '../../src/kernel/clock.js';
import { systemClock } from '../../src/kernel/clock.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { jsonEqual } from '../../src/kernel/json.js';
import type { Logger } from '../../src/kernel/logger.js';
import type {
  AuditEntry,
  AuditQuery,
  Deployment,
  ListQuery,
  NodeAgentFacts,
  NodeListQuery,
  NodeRecord,
  Projections,
} from '../../src/projections/port.js';
import type { NodeVitals, PresenceFacts } from '../../src/telemetry/port.js';
import type { RestDeps } from '../../src/transport/rest/build.js';

type AgentFact = Parameters<Parameters<Projections['onAgentFact']>[0]>[0];

interface Resource {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface FakeControlPlane {
  readonly deps: RestDeps;
  /** Log lines, as one text each. */
  readonly logged: string[];
  readonly audit: AuditEntry[];
  /** The last query that reached the audit read model. */
  readonly auditQueries: AuditQuery[];
  readonly sessionsEndedCalls: string[];
  readonly loginAddresses: string[];
  /** Contexts of every command, in order. */
  readonly contexts: CommandContext[];
  tokenOf(role: Caller['role']): string;
  connect(nodeId: string): void;
  disconnect(nodeId: string): void;
  applied(nodeId: string): void;
  rejected(nodeId: string, path: string): void;
  /** What the next calls of a port do in place of their work. */
  fail(with_: Error | undefined): void;
  setReadiness(ready: boolean, reasons: readonly string[]): void;
  setLag(lagging: boolean): void;
  setSessionsEnded(ended: boolean | Promise<boolean>): void;
  position(): number;
}

export function createFakeControlPlane(options: { readonly clock?: Clock } = {}): FakeControlPlane {
  const clock = options.clock ?? systemClock;
  const now = (): string => timestamp(clock.now());
  const nodes = new Map<string, NodeState>();
  const upstreams = new Map<string, UpstreamState>();
  const chains = new Map<string, ChainState>();
  const facts = new Map<string, NodeAgentFacts>();
  const generations = new Map<string, number>();
  const presence = new Map<string, PresenceFacts>();
  const pushed = new Map<string, { generation: number; at: number }>();
  const deployments: Deployment[] = [];
  const keys = new Map<string, { body: string; commandId: string; resourceId: string }>();
  const factListeners = new Set<(fact: AgentFact) => void>();
  const users = new Map<string, UserView>();
  const audit: AuditEntry[] = [];
  const auditQueries: AuditQuery[] = [];
  const logged: string[] = [];
  const sessionsEndedCalls: string[] = [];
  const loginAddresses: string[] = [];
  const contexts: CommandContext[] = [];
  let settings: SettingsState = {
    version: 0,
    updated_at: null,
    multiplex: false,
    multiplex_port: null,
    heartbeat_interval_secs: 10,
    metrics_interval_secs: 60,
    offline_after_secs: null,
    nodes: {},
  };
  let position = 100;
  let revision = 0;
  let failure: Error | undefined;
  let lagging = false;
  let sessionsEnd: boolean | Promise<boolean> = true;
  let readiness: { ready: boolean; reasons: readonly string[] } = { ready: true, reasons: [] };

  for (const role of ['admin', 'operator', 'viewer'] as const) {
    const id = randomIds.next();
    users.set(role, {
      id,
      username: role,
      display_name: null,
      email: null,
      role,
      created_at: now(),
      updated_at: now(),
      version: 1,
    });
  }
  const userById = (id: string): UserView => {
    const user = [...users.values()].find((one) => one.id === id);
    if (user === undefined) throw new ServiceError('not_found', 'no user has this id');
    return user;
  };

  const emptyFacts: NodeAgentFacts = {
    connected_once: false,
    agent_version: null,
    detected_addresses: [],
    reported_multiplex: null,
    reported_multiplex_port: null,
    applied: null,
    rejected: null,
    duplicate_until: null,
    version_conflict_at: null,
  };

  /** Runs a command with idempotency as the gateway would. `change` gives undefined result events when nothing changed. */
  async function run<R>(
    ctx: CommandContext,
    resourceId: () => string,
    change: (commandId: string) => { result: R; wrote: boolean },
  ): Promise<CommandOutcome<R>> {
    contexts.push(ctx);
    await Promise.resolve();
    if (failure !== undefined) throw failure;
    const mark = ctx.idempotency;
    if (mark !== undefined) {
      const before = keys.get(mark.key_hash);
      if (before !== undefined) {
        if (before.body !== mark.body_hash)
          throw new ServiceError('conflict', 'Idempotency-Key: used with another body');
        return { kind: 'repeated', commandId: before.commandId, resourceId: before.resourceId, position, lagging };
      }
    }
    const commandId = randomIds.next();
    const { result, wrote } = change(commandId);
    if (wrote) {
      position += 7;
      revision += 1;
      if (mark !== undefined) keys.set(mark.key_hash, { body: mark.body_hash, commandId, resourceId: resourceId() });
    }
    const event: RecordedEvent = {
      id: randomIds.next(),
      type: 'Changed',
      data: {},
      metadata: {
        command: { id: commandId, index: 0, count: 1 },
        actor: ctx.actor,
        request_id: ctx.requestId,
        occurred_at: now(),
        schema_version: 1,
      },
      stream: streams.fleet,
      revision,
      position,
    };
    return { kind: 'done', commandId, events: wrote ? [event] : [], position, result, lagging };
  }

  function existing<S extends { readonly version: number }>(
    table: ReadonlyMap<string, S>,
    id: string,
    ifMatch: IfMatch,
  ): S {
    const state = table.get(id);
    if (state === undefined) throw new ServiceError('not_found', 'nothing has this id');
    requireMatch(ifMatch, state.version);
    return state;
  }

  function requireMatch(ifMatch: IfMatch, version: number): void {
    if (ifMatch === undefined || (ifMatch === '*' && version > 0)) return;
    if (ifMatch !== '*' && ifMatch.includes(version)) return;
    throw new ServiceError('precondition_failed', `If-Match: the version is ${version}`);
  }

  function requireName(table: ReadonlyMap<string, Resource>, name: string | undefined, own?: string): void {
    const taken = [...table.values()].find((one) => one.id !== own && one.name.toLowerCase() === name?.toLowerCase());
    if (taken !== undefined) throw new ServiceError('conflict', `name: taken by ${taken.id}`);
  }

  function merge<S extends Resource>(table: Map<string, S>, state: S, fields: object): { result: S; wrote: boolean } {
    const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    const next = { ...state, ...set };
    if (jsonEqual(next, state)) return { result: state, wrote: false };
    const kept = { ...next, version: state.version + 1, updated_at: now() };
    table.set(state.id, kept);
    return { result: kept, wrote: true };
  }

  const meta = (id: string) => ({ id, version: 1, created_at: now(), updated_at: now() });

  function checkReferences(fields: Pick<Partial<ChainState>, 'hops' | 'target'>): void {
    for (const [index, hop] of (fields.hops ?? []).entries()) {
      if (!nodes.has(hop.node_id)) throw new ServiceError('invalid_request', `hops[${index}].node_id: no such node`);
    }
    const target = fields.target;
    if (target !== undefined && 'upstream_id' in target && !upstreams.has(target.upstream_id)) {
      throw new ServiceError('invalid_request', 'target.upstream_id: no such upstream');
    }
  }

  const commands: CommandHandlers = {
    nodes: {
      create: (ctx, fields) => {
        const id = randomIds.next();
        return run(
          ctx,
          () => id,
          () => {
            requireName(nodes, fields.name);
            const psk = fields.issuePsk
              ? { fingerprint: `SHA256:${id}`, issued_at: now(), verifier: { sealed: true } as never }
              : null;
            const { issuePsk: _issuePsk, ...rest } = fields;
            const node: NodeState = {
              ...meta(id),
              ...rest,
              psk,
              public_ipv4: null,
              public_ipv6: null,
              generation_offset: 0,
              commands: [],
            };
            nodes.set(id, node);
            generations.set(id, revision + 2);
            return { result: { node, controlPsk: fields.issuePsk ? `svcpsk1_${id}` : null }, wrote: true };
          },
        );
      },
      update: (ctx, id, ifMatch, fields) =>
        run(
          ctx,
          () => id,
          () => {
            const state = existing(nodes, id, ifMatch);
            requireName(nodes, fields.name, id);
            return merge(nodes, state, fields);
          },
        ),
      remove: (ctx, id, ifMatch) =>
        run(
          ctx,
          () => id,
          () => {
            existing(nodes, id, ifMatch);
            const user = [...chains.values()].find((chain) => chain.hops.some((hop) => hop.node_id === id));
            if (user !== undefined) throw new ServiceError('conflict', `named by l4_chain ${user.name}`);
            nodes.delete(id);
            return { result: undefined, wrote: true };
          },
        ),
      issuePsk: (ctx, id) =>
        run(
          ctx,
          () => id,
          () => {
            const state = existing(nodes, id, undefined);
            const fingerprint = `SHA256:${randomIds.next()}`;
            merge(nodes, state, { psk: { fingerprint, issued_at: now(), verifier: { sealed: true } } });
            return { result: { controlPsk: 'svcpsk1_new', fingerprint }, wrote: true };
          },
        ),
      command: (ctx, id, command) =>
        run(
          ctx,
          () => id,
          () => {
            existing(nodes, id, undefined);
            const result = { id, command, queued_at: now(), expires_at: now() };
            return { result, wrote: true };
          },
        ),
      refresh: (ctx, id) =>
        run(
          ctx,
          () => id,
          () => {
            existing(nodes, id, undefined);
            const generation = (generations.get(id) ?? 0) + 1;
            generations.set(id, generation);
            if (presence.has(id)) pushed.set(id, { generation, at: clock.now() });
            return { result: { generation }, wrote: true };
          },
        ),
    },
    upstreams: {
      create: (ctx, fields) => {
        const id = randomIds.next();
        return run(
          ctx,
          () => id,
          () => {
            requireName(upstreams, fields.name);
            const state: UpstreamState = { ...meta(id), ...fields, enabled: true };
            upstreams.set(id, state);
            return { result: state, wrote: true };
          },
        );
      },
      update: (ctx, id, ifMatch, fields) =>
        run(
          ctx,
          () => id,
          () => merge(upstreams, existing(upstreams, id, ifMatch), fields),
        ),
      remove: (ctx, id, ifMatch) =>
        run(
          ctx,
          () => id,
          () => {
            existing(upstreams, id, ifMatch);
            upstreams.delete(id);
            return { result: undefined, wrote: true };
          },
        ),
    },
    chains: {
      create: (ctx, fields) => {
        const id = randomIds.next();
        return run(
          ctx,
          () => id,
          () => {
            checkReferences(fields);
            requireName(chains, fields.name);
            const state: ChainState = { ...meta(id), ...fields, deployed: null };
            chains.set(id, state);
            return { result: state, wrote: true };
          },
        );
      },
      update: (ctx, id, ifMatch, fields) =>
        run(
          ctx,
          () => id,
          () => {
            const state = existing(chains, id, ifMatch);
            checkReferences(fields as Partial<ChainState>);
            requireName(chains, fields.name, id);
            return merge(chains, state, fields);
          },
        ),
      remove: (ctx, id, ifMatch) =>
        run(
          ctx,
          () => id,
          () => {
            existing(chains, id, ifMatch);
            chains.delete(id);
            return { result: undefined, wrote: true };
          },
        ),
      deploy: (ctx, id, ifMatch) =>
        run(
          ctx,
          () => id,
          (commandId) => {
            const state = existing(chains, id, ifMatch);
            if (!state.enabled) throw new ServiceError('conflict', 'the chain is disabled');
            const { payload, hops, target } = state;
            const deployed = {
              payload,
              hops,
              target,
              chain_version: state.version,
              at: now(),
              deployment_id: commandId,
            };
            const { result } = merge(chains, state, { deployed });
            const touched = hops.map((hop) => {
              const generation = (generations.get(hop.node_id) ?? 0) + 1;
              generations.set(hop.node_id, generation);
              return { node_id: hop.node_id, generation };
            });
            deployments.unshift({
              id: commandId,
              chain_id: id,
              chain_version: state.version,
              at: deployed.at,
              nodes: touched,
            });
            return { result: { chain: result, nodes: touched }, wrote: true };
          },
        ),
    },
    settings: {
      update: (ctx, ifMatch, fields) =>
        run(
          ctx,
          () => 'connectivity',
          () => {
            requireMatch(ifMatch, settings.version);
            const overrides = { ...settings.nodes };
            for (const one of fields.nodes ?? []) {
              if (one.multiplex === null) delete overrides[one.node_id];
              else overrides[one.node_id] = { multiplex: one.multiplex, multiplex_port: one.multiplex_port ?? null };
            }
            const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
            settings = { ...settings, ...set, nodes: overrides, version: settings.version + 1, updated_at: now() };
            return { result: settings, wrote: true };
          },
        ),
    },
    accounts: {
      login: async (username, password, address) => {
        loginAddresses.push(address);
        if (failure !== undefined) throw failure;
        const user = users.get(username.toLowerCase());
        if (user === undefined || password !== 'correct horse battery') {
          throw new ServiceError('unauthenticated', 'expected another user name or password');
        }
        return { token: `token.${user.role}`, expiresIn: 43_200, user };
      },
      authenticate: (token) => {
        const user = users.get(token.replace(/^token\./, ''));
        return user === undefined || !token.startsWith('token.')
          ? undefined
          : { userId: user.id, username: user.username, role: user.role };
      },
      me: userById,
      updateMe: (ctx, userId, ifMatch, fields) =>
        run(
          ctx,
          () => userId,
          () => {
            const state = userById(userId);
            requireMatch(ifMatch, state.version);
            const table = new Map([[state.id, { ...state, name: state.username }]]);
            const { result, wrote } = merge(table, { ...state, name: state.username }, fields);
            const { name: _name, ...kept } = result;
            users.set(state.username, kept);
            return { result: kept, wrote };
          },
        ),
    },
  };

  function listOf<S extends Resource>(all: readonly S[], query: ListQuery): { items: S[]; total: number } {
    const descending = query.sort.startsWith('-');
    const field = query.sort.replace('-', '') as 'name' | 'created_at' | 'updated_at';
    const wanted = all.filter((one) => query.q === undefined || one.name.toLowerCase().includes(query.q.toLowerCase()));
    const key = (one: S): string => `${field === 'name' ? one.name.toLowerCase() : one[field]}\u0000${one.id}`;
    wanted.sort((a, b) => (key(a) < key(b) ? -1 : 1) * (descending ? -1 : 1));
    const start = (query.page - 1) * query.pageSize;
    return { items: wanted.slice(start, start + query.pageSize), total: wanted.length };
  }

  const recordOf = (node: NodeState): NodeRecord => ({ node, agent: facts.get(node.id) ?? emptyFacts });
  function filtered(query: NodeListQuery): NodeState[] {
    return [...nodes.values()].filter((node) => {
      const { ids, label } = query;
      if (label !== undefined && node.labels[label.key] !== label.value) return false;
      if (ids === undefined) return true;
      if ('in' in ids) return ids.in.includes(node.id);
      return !ids.notIn.has(node.id) && (facts.get(node.id) ?? emptyFacts).connected_once === ids.connectedOnce;
    });
  }

  const logger: Logger = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [
      level,
      (fields: object, message: string) => void logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    ]),
  ) as never;

  function tell(fact: AgentFact): void {
    for (const listener of factListeners) listener(fact);
  }

  const deps: RestDeps = {
    commands,
    clock,
    ids: randomIds,
    logger,
    projections: {
      nodes: {
        get: async (id) => {
          const node = nodes.get(id);
          return node === undefined ? undefined : recordOf(node);
        },
        getMany: async (ids) => ids.flatMap((id) => nodes.get(id) ?? []).map(recordOf),
        list: async (query) => {
          if (failure !== undefined) throw failure;
          const { items, total } = listOf(filtered(query), query);
          return { items: items.map(recordOf), total };
        },
      },
      upstreams: {
        get: async (id) => upstreams.get(id),
        list: async (query) => listOf([...upstreams.values()], query),
      },
      chains: {
        get: async (id) => chains.get(id),
        list: async (query) => listOf([...chains.values()], query),
      },
      deployments: {
        get: async (id) => deployments.find((one) => one.id === id),
        ofChain: async (chainId) => deployments.filter((one) => one.chain_id === chainId),
      },
      audit: {
        list: async (query) => {
          auditQueries.push(query);
          return { items: audit, total: audit.length };
        },
        get: async (id) => audit.find((one) => one.id === id),
      },
      reached: async (wanted) => wanted <= position,
      onAgentFact(listener) {
        factListeners.add(listener);
        return () => factListeners.delete(listener);
      },
    },
    delivery: {
      state: () => ({ kind: 'ready' }),
      chain: (id) => chains.get(id),
      settings: () => settings,
      generation: (id) => generations.get(id),
      pushed: (id) => pushed.get(id),
      plan: (id) => {
        const chain = chains.get(id);
        if (chain === undefined) return undefined;
        return {
          nodes: chain.hops.map((hop) => ({ node_id: hop.node_id, added: ['rule'], changed: [], removed: [] })),
          collisions: [],
        };
      },
      snapshotJson: async (id) => {
        const generation = generations.get(id);
        return generation === undefined
          ? undefined
          : { generation, checksum: 'ab'.repeat(32), snapshot: { generation: String(generation) } };
      },
    },
    telemetry: {
      presence: async (id) => presence.get(id),
      online: async () => new Map(presence),
      vitals: async (ids) => {
        const seen: NodeVitals = {
          last_seen_at: now(),
          cpu_usage: 0.25,
          memory_usage: 0.5,
          uptime_seconds: 60,
        };
        return new Map(ids.filter((id) => presence.has(id)).map((id) => [id, seen]));
      },
    },
    sessionsEnded: async (nodeId) => {
      sessionsEndedCalls.push(nodeId);
      const ended = await sessionsEnd;
      if (ended) presence.delete(nodeId);
      return ended;
    },
    readiness: () => readiness,
    storesAway: () => undefined,
    metrics: async () => '# HELP up Is it up.\n# TYPE up gauge\nup 1\n',
  };

  return {
    deps,
    logged,
    audit,
    auditQueries,
    sessionsEndedCalls,
    loginAddresses,
    contexts,
    tokenOf: (role) => `token.${role}`,
    connect(nodeId) {
      facts.set(nodeId, { ...(facts.get(nodeId) ?? emptyFacts), connected_once: true });
      presence.set(nodeId, { session_id: 'ab', instance_id: 'one', pushed_generation: 0, pushed_at: null });
    },
    disconnect: (nodeId) => void presence.delete(nodeId),
    applied(nodeId) {
      const generation = generations.get(nodeId) ?? 0;
      facts.set(nodeId, {
        ...(facts.get(nodeId) ?? emptyFacts),
        applied: { generation, checksum: 'ab', at: now() },
        rejected: null,
      });
      tell({ type: 'AgentConfigApplied', data: { node_id: nodeId, generation, checksum: 'ab', duration_ms: 1 } });
    },
    rejected(nodeId, path) {
      const generation = generations.get(nodeId) ?? 0;
      const errors = [{ resource_type: 'l4_chain', resource_id: 'x', path, message: 'port in use' }];
      facts.set(nodeId, {
        ...(facts.get(nodeId) ?? emptyFacts),
        rejected: { generation, checksum: 'ab', at: now(), errors },
      });
      tell({ type: 'AgentConfigRejected', data: { node_id: nodeId, generation, checksum: 'ab', errors } });
    },
    fail: (error) => void (failure = error),
    setReadiness: (ready, reasons) => void (readiness = { ready, reasons }),
    setLag: (is) => void (lagging = is),
    setSessionsEnded: (ended) => void (sessionsEnd = ended),
    position: () => position,
  };
}
