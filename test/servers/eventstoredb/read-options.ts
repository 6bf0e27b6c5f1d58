/** The options of `Streams/Read`, with the checks of 23.10.8. */
import { status } from '@grpc/grpc-js';
import { asPlain, handlerThrew, notValid, Refusal, streamName } from './calls.js';
import type { LogEvent } from './log.js';
import type { Plain } from './wire.js';

export type StreamStart = number | 'start' | 'end';

export interface AllFilter {
  readonly matches: (event: LogEvent) => boolean;
  readonly window: number;
  readonly interval: number;
}

export interface ReadOptions {
  readonly target:
    | { readonly kind: 'stream'; readonly name: string; readonly from: StreamStart }
    | {
        readonly kind: 'all';
        readonly from: { readonly commit: number; readonly prepare: number } | 'start' | 'end';
        readonly filter: AllFilter | undefined;
      };
  readonly backwards: boolean;
  /** Undefined for a subscription. */
  readonly count: number | undefined;
  readonly resolveLinks: boolean;
  /** Undefined when the request has neither. */
  readonly structuredIds: boolean | undefined;
  readonly tellLast: boolean;
}

function filterOf(filter: Plain): AllFilter {
  const byStream = asPlain(filter['streamIdentifier']);
  const expression = byStream ?? asPlain(filter['eventType']);
  if (expression === undefined) {
    throw notValid(
      'ReadReq+Types+Options+Types+FilterOptions',
      `'{ ${Object.keys(filter)
        .map((key) => `"${key}": { }`)
        .join(', ')} }'`,
    );
  }
  if (filter['max'] === undefined && filter['count'] === undefined) {
    throw notValid('ReadReq+Types+Options+Types+FilterOptions+WindowOneofCase');
  }
  const text = (event: LogEvent): string => (byStream === undefined ? event.type : event.stream);
  const prefixes = (expression['prefix'] as readonly string[] | undefined) ?? [];
  const regex = expression['regex'];
  let matches = (event: LogEvent): boolean => prefixes.some((prefix) => text(event).startsWith(prefix));
  if (typeof regex === 'string') {
    try {
      const compiled = new RegExp(regex);
      matches = (event) => compiled.test(text(event));
    } catch {
      throw handlerThrew();
    }
  }
  return {
    matches,
    window: filter['max'] === undefined ? 32 : Number(filter['max']),
    interval: Number(filter['checkpointIntervalMultiplier'] ?? 0),
  };
}

/** @throws Refusal */
export function parseReadOptions(request: Plain): ReadOptions {
  const options = asPlain(request['options']);
  if (options === undefined) throw handlerThrew();
  const stream = asPlain(options['stream']);
  const all = asPlain(options['all']);
  if (stream === undefined && all === undefined) throw notValid('ReadReq+Types+Options+StreamOptionOneofCase');
  const backwards = options['readDirection'] === 'Backwards';
  const subscribes = options['subscription'] !== undefined;
  const filter = asPlain(options['filter']);
  const filterCase = filter !== undefined ? 'Filter' : options['noFilter'] === undefined ? 'None' : 'NoFilter';
  const countCase = subscribes ? 'Subscription' : options['count'] === undefined ? 'None' : 'Count';
  const combined = filterCase === 'None' || countCase === 'None' || (stream !== undefined && filter !== undefined);
  if (combined || (subscribes && backwards)) {
    const kinds = [
      stream === undefined ? 'All' : 'Stream',
      countCase,
      backwards ? 'Backwards' : 'Forwards',
      filterCase,
    ];
    throw new Refusal(status.INVALID_ARGUMENT, `The combination of (${kinds.join(', ')}) is invalid.`);
  }
  const uuid = asPlain(options['uuidOption']);
  const shared = {
    backwards,
    count: subscribes ? undefined : Number(options['count']),
    resolveLinks: options['resolveLinks'] === true,
    structuredIds: uuid === undefined ? undefined : uuid['structured'] !== undefined,
    tellLast: Number(asPlain(options['controlOption'])?.['compatibility'] ?? 0) >= 1,
  };
  const fixed = (from: Plain): 'start' | 'end' | undefined =>
    from['start'] !== undefined ? 'start' : from['end'] !== undefined ? 'end' : undefined;
  if (stream !== undefined) {
    const name = streamName(stream);
    const from = stream['revision'] === undefined ? fixed(stream) : Number(stream['revision']);
    if (name === undefined || name === '' || from === undefined) throw handlerThrew();
    return { ...shared, target: { kind: 'stream', name, from } };
  }
  const position = asPlain(all?.['position']);
  const from =
    position === undefined
      ? fixed(all ?? {})
      : { commit: Number(position['commitPosition']), prepare: Number(position['preparePosition']) };
  if (from === undefined || (typeof from === 'object' && from.prepare > from.commit)) throw handlerThrew();
  const parsed = filter === undefined ? undefined : filterOf(filter);
  if (subscribes && parsed?.interval === 0) throw handlerThrew();
  return { ...shared, target: { kind: 'all', from, filter: parsed } };
}
