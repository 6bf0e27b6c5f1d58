/**
 * Read your writes: the context of a command, the headers of its answer, the wait of a GET with `x-min-position`, and
 * the refusal of commands while a store is away. Implements `docs/contract/rest.md#consistency` and
 * `docs/contract/rest.md#errors`.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext, CommandOutcome } from '../../../commands/port.js';
import type { Caller } from '../../../commands/accounts-port.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps } from '../deps.js';
import { rolloutAsked } from './rolled-out.js';
import { idempotencyMark } from '../schemas/headers.js';

/** The caller that the gate has authenticated. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('the route needs a caller, but its access does not ask for one');
  return request.caller;
}

export function commandContext(request: FastifyRequest): CommandContext {
  const caller = callerOf(request);
  return {
    actor: { type: 'user', id: caller.userId, name: caller.username },
    ...(caller.apiToken === null ? {} : { token: caller.apiToken }),
    requestId: request.id,
    idempotency: idempotencyMark(request, caller.userId),
    rollout: rolloutAsked(request),
    ended: caller.ended,
  };
}

/** Sets the headers of a command's answer. */
export function setCommandHeaders(reply: FastifyReply, outcome: CommandOutcome<unknown>): void {
  void reply.header('x-position', String(outcome.position));
}

/** Makes a GET with `x-min-position` wait, after validation and before the resource is read. */
export function installMinPosition(app: RestApp, deps: RestDeps): void {
  app.addHook('preHandler', (request, _reply, next) => {
    // Where a route declares the header, validation has made it a number.
    const position: unknown = request.method === 'GET' ? request.headers['x-min-position'] : undefined;
    if (typeof position !== 'number') return next();
    return deps.held.reached(position, limits.rest.projectionWaitMs).then((reached) => {
      if (!reached) throw notYet();
    });
  });
}

const notYet = (): ServiceError =>
  new ServiceError('unavailable', 'x-min-position: this instance does not show that log position yet');

/**
 * Waits until the stored read models hold what this instance has answered before. If that takes too long, the answer says that
 * it may lag, or is a 503 when the caller asked for a position.
 * @throws ServiceError `unavailable`
 */
async function untilStored(deps: RestDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  // The query itself fails while the store is away; waiting would be in vain.
  if (deps.readStoreAway()) return;
  const asked: unknown = request.headers['x-min-position'];
  const position = Math.max(deps.held.position(), typeof asked === 'number' ? asked : 0);
  if (await deps.projections.reached(position, limits.rest.projectionWaitMs)) return;
  if (typeof asked === 'number') throw notYet();
  void reply.header('x-projection-lag', 'true');
}

/** The command that a request repeats. @throws ServiceError `unavailable` when the log does not show it */
export function commandBefore({
  command,
}: Extract<CommandOutcome<unknown>, { readonly kind: 'repeated' }>): RecordedCommand {
  if (command !== undefined) return command;
  throw new ServiceError('unavailable', 'the command was carried out before, and the log does not show it');
}

/** The command of an outcome, or of the earlier use of its key; undefined when nothing was written. @throws as `commandBefore` */
export function commandOf(outcome: CommandOutcome<unknown>): RecordedCommand | undefined {
  if (outcome.kind === 'repeated') return commandBefore(outcome);
  const [first, ...rest] = outcome.events;
  return first && { stream: first.stream, events: [first, ...rest] };
}

/** Makes routes with `readsStored` wait for the stored read models. */
export function installStoredReads(app: RestApp, deps: RestDeps): void {
  app.addHook('preHandler', async (request, reply) => {
    if (request.routeOptions.config.readsStored === true) await untilStored(deps, request, reply);
  });
}

const isStale = ({ readStoreAway, reports }: RestDeps): boolean => readStoreAway() || reports.stale();

/** Marks each GET whose reports of nodes may be out of date, because the read store is away. */
export function installStaleness(app: RestApp, deps: RestDeps): void {
  app.addHook('onSend', async (request, reply) => {
    if (request.method !== 'GET' || reply.statusCode !== 200 || !isStale(deps)) return;
    if (request.routeOptions.config.access !== 'open') void reply.header('x-telemetry-stale', 'true');
  });
}

/** Refuses commands at once while the event store is known to be away. A sign-in needs no store. */
export function installOutages(app: RestApp, deps: RestDeps): void {
  app.addHook('preHandler', (request, _reply, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    const { access } = request.routeOptions.config;
    const away = access === 'login' || access === undefined ? undefined : deps.commandsRefused();
    if (away !== undefined) throw new ServiceError('unavailable', `${away}; nothing was written`);
    next();
  });
}
