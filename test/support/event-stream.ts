/** A client of the event feed that reads server-sent events as they come, and keeps its bytes until the test takes them. */
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { eventually } from './eventually.js';

/** One block of a stream. */
export interface SeenEvent {
  readonly id: string | undefined;
  /** Undefined for a comment. */
  readonly type: string | undefined;
  readonly data: ReturnType<typeof JSON.parse>;
  readonly comment: string | undefined;
}

export interface EventStream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** All blocks so far, the opening one left out. */
  readonly seen: readonly SeenEvent[];
  /** The whole body of an answer that is no stream. */
  readonly body: () => string;
  /** The events of these types so far. */
  of(...types: readonly string[]): readonly SeenEvent[];
  /** The first block that fits, once it has come. */
  next(fits: (event: SeenEvent) => boolean, what: string): Promise<SeenEvent>;
  ended(): boolean;
  pause(): void;
  resume(): void;
  close(): void;
}

export interface StreamChoices {
  readonly token: string;
  readonly query?: string;
  readonly lastEventId?: string | undefined;
  readonly localAddress?: string;
  readonly onEvent?: (event: SeenEvent) => void;
}

/** Resolves when the answer has begun. */
export async function openEventStream(url: string, choices: StreamChoices): Promise<EventStream> {
  const { token, query = '', lastEventId, localAddress, onEvent } = choices;
  const seen: SeenEvent[] = [];
  let text = '';
  let whole = '';
  let isEnded = false;
  const [answer, call] = await new Promise<[IncomingMessage, ClientRequest]>((resolve, reject) => {
    const made = request(`${url}/api/events${query}`, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${token}`,
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      },
      agent: false,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    made.on('response', (response) => resolve([response, made]));
    made.on('error', reject);
    made.end();
  });
  answer.setEncoding('utf8');
  answer.on('data', (chunk: string) => {
    text += chunk;
    if (answer.statusCode !== 200) whole += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = parse(text.slice(0, end));
      text = text.slice(end + 2);
      if (event === undefined) continue;
      seen.push(event);
      onEvent?.(event);
    }
  });
  const finish = (): void => {
    isEnded = true;
  };
  answer.on('end', finish);
  answer.on('close', finish);
  answer.on('error', finish);
  call.on('error', finish);
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    seen,
    body: () => whole,
    of: (...types) => seen.filter(({ type }) => type !== undefined && types.includes(type)),
    async next(fits, what) {
      await eventually(() => (seen.some(fits) ? what : 'not yet')).toBe(what);
      return seen.find(fits)!;
    },
    ended: () => isEnded,
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    close: () => call.destroy(),
  };
}

function parse(block: string): SeenEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  if (fields.has('retry')) return undefined;
  const data = fields.get('data');
  return {
    id: fields.get('id'),
    type: fields.get('event'),
    data: data === undefined ? undefined : JSON.parse(data),
    comment: fields.get(''),
  };
}
