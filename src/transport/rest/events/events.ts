/** The event feed over REST: as server-sent events, or in pages. Implements `docs/contract/automation.md#event-feed`. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '../../../commands/accounts-port.js';
import { matcherOf, mayRead } from '../../../feed/filters.js';
import type { FeedBatch, FeedPlace, FeedSubject } from '../../../feed/port.js';
import { withFirstOf } from '../../../kernel/background.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { callerOf } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers } from '../answers/envelope.js';
import { readHeaders } from '../schemas/headers.js';
import { createEventStreams } from './event-streams.js';
import { eventsPage, pageEntry, sampleStream } from './event-text.js';
import { eventsQuerystring, filtersOf, type EventsQuery } from './events-query.js';
import { tuning } from '../tuning.js';

const eventStream = 'text/event-stream';

export function eventRoutes(app: RestApp, deps: RestDeps): void {
  const streams = createEventStreams(deps);
  const tokens = watchTokens();
  const closing = new AbortController();
  app.addHook('preClose', async () => {
    closing.abort();
    tokens.close();
    streams.close();
  });

  app.get('/api/events', {
    config: { access: 'anyone', takes: 'none', refuses: ['conflict', 'rate_limited'] },
    schema: {
      operationId: 'listEvents',
      summary: 'Read the event feed from any place, as a stream of server-sent events or in pages',
      description:
        'A stream with `Accept: text/event-stream`, a page with any other `Accept`. A cursor continues right after its event, on every instance; in a stream, `Last-Event-ID` takes precedence over `after`. Only admins see users and sign-ins.',
      streams: { media: eventStream, example: sampleStream },
      querystring: eventsQuerystring,
      headers: readHeaders.extend({
        'last-event-id': z
          .string()
          .optional()
          .meta({ description: 'The cursor after which a stream continues, as browsers send it', examples: ['start'] }),
      }),
      response: answers(eventsPage),
    },
    handler: async (request, reply) => {
      const { query } = request;
      const select = selectorOf(request, query);
      return acceptsStream(request) ? openStream(request, reply, query, select) : page(request, reply, query, select);
    },
  });

  async function openStream(
    request: FastifyRequest,
    reply: FastifyReply,
    query: EventsQuery,
    select: Selector,
  ): Promise<FastifyReply> {
    refuseOfPage(query);
    const caller = callerOf(request);
    const leave = deps.eventStreams.take(caller.userId);
    try {
      const place = await deps.feed.resolve(lastEventId(request) ?? query.after ?? 'now');
      if (reply.raw.destroyed || closing.signal.aborted)
        throw new ServiceError('unavailable', 'the service is shutting down');
      beginStream(reply);
      const key = JSON.stringify([filtersOf(query), caller.role === 'admin' || caller.userId]);
      const end = streams.open({ response: reply.raw, place, key, select });
      deps.answers.endsBy(reply.raw, () => end('too_slow'));
      const unwatch = tokens.watch(caller, () => end('token_ended'));
      reply.raw.once('close', () => {
        unwatch();
        leave();
      });
      return reply;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async function page(
    request: FastifyRequest,
    reply: FastifyReply,
    query: EventsQuery,
    select: Selector,
  ): Promise<FastifyReply> {
    const { page_size = limits.feed.pageSizeDefault, wait_ms = 0 } = query;
    const leave = wait_ms > 0 ? deps.eventStreams.take(callerOf(request).userId) : undefined;
    const gone = new AbortController();
    let tokenEnded = false;
    reply.raw.once('close', () => gone.abort());
    const unwatch = tokens.watch(callerOf(request), () => {
      tokenEnded = true;
      gone.abort();
    });
    try {
      const { items, cursor, caughtUp } = await withFirstOf([gone.signal, closing.signal], async (signal) =>
        readPage(deps, await deps.feed.resolve(query.after ?? 'now'), {
          maxItems: page_size,
          until: deps.clock.monotonic() + wait_ms,
          select,
          signal,
        }),
      );
      if (tokenEnded) throw new ServiceError('unauthenticated', 'the token has ended');
      const data = `{"items":[${items.map(pageEntry).join(',')}],"cursor":"${cursor}","caught_up":${caughtUp}}`;
      const text = `{"success":true,"data":${data},"error":null}`;
      return await reply.type('application/json; charset=utf-8').serializer(String).send(text);
    } finally {
      unwatch();
      leave?.();
    }
  }
}

/**
 * Ends streams and long requests soon after their token ends: checks every second, in memory, whether it still
 * authenticates.
 */
function watchTokens() {
  const uses = new Set<{ readonly caller: Caller; readonly ended: () => void }>();
  const look = (): void => {
    for (const { caller, ended } of uses) if (caller.ended()) ended();
  };
  const timer = setInterval(look, tuning.events.tokensEveryMs).unref();
  return {
    /** @param ended is called when the caller's token has ended @returns how to stop watching */
    watch(caller: Caller, ended: () => void): () => void {
      const use = { caller, ended };
      uses.add(use);
      return () => void uses.delete(use);
    },
    close: () => clearInterval(timer),
  };
}

type Selector = (about: FeedSubject) => boolean;

/** Selects what the caller asks for and may read. */
function selectorOf(request: FastifyRequest, query: EventsQuery): Selector {
  const { role, userId } = callerOf(request);
  const reader = { admin: role === 'admin', userId };
  const matches = matcherOf(filtersOf(query));
  return (about) => matches(about) && mayRead(about, reader);
}

function acceptsStream({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').split(',').some((range) => range.split(';')[0]?.trim().toLowerCase() === eventStream);
}

function lastEventId({ headers }: FastifyRequest): string | undefined {
  const sent = headers['last-event-id'];
  return typeof sent === 'string' && sent !== '' ? sent : undefined;
}

/** @throws ServiceError `invalid_request` */
function refuseOfPage(query: EventsQuery): void {
  for (const name of ['page_size', 'wait_ms'] as const) {
    if (query[name] !== undefined)
      throw new ServiceError('invalid_request', `${name}: not of a stream, only of a page`);
  }
}

function beginStream(reply: FastifyReply): void {
  reply.hijack();
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': eventStream,
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
}

interface PageBounds {
  readonly maxItems: number;
  /** By the monotonic clock: how long to wait for the first item. */
  readonly until: number;
  readonly select: Selector;
  readonly signal: AbortSignal;
}

/** One read is one page, so that no items are held during the next read. */
async function readPage(
  { feed, clock }: Pick<RestDeps, 'feed' | 'clock'>,
  from: FeedPlace,
  { maxItems, until, select, signal }: PageBounds,
): Promise<Pick<FeedBatch, 'items' | 'caughtUp'> & { readonly cursor: string }> {
  for (let place = from; ;) {
    const { items, looked, caughtUp, ...read } = await feed.read(place, { maxItems, select, signal });
    place = read.place;
    const left = until - clock.monotonic();
    if (items.length > 0 || (caughtUp ? left <= 0 : looked > 0) || signal.aborted)
      return { items, caughtUp, cursor: place.cursor ?? 'start' };
    if (caughtUp) await feed.wait(place, left, signal);
  }
}
