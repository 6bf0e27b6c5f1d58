/**
 * One try: a POST to a URL whose addresses are checked when it is dialled, with bounds on the time and on the answer's bytes.
 * Follows no redirects and uses no proxy. Implements `docs/contract/automation.md#webhooks`.
 */
import { lookup as lookUp, type LookupAddress } from 'node:dns';
import { request as requestHttp, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction, TcpNetConnectOpts } from 'node:net';
import { unlessAborted, withFirstOf } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { createSemaphore } from '../kernel/semaphore.js';
import { literalIn } from './addresses.js';
import { retryAfterOf, type Answer } from './schedule.js';
import { tuning } from './tuning.js';

export interface Message {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
}

export interface Sender {
  /** Never rejects: an error is part of the answer. */
  send(message: Message, signal: AbortSignal): Promise<Answer>;
  close(): void;
}

export interface SenderDeps {
  /** Whether an address may be dialled. */
  mayDial(address: string): boolean;
  readonly clock: Pick<Clock, 'now'>;
  /** For tests. */
  readonly lookup?: typeof lookUp | undefined;
  readonly tryMs?: number;
}

export function createSender({ mayDial, clock, lookup = lookUp, tryMs = limits.webhooks.tryMs }: SenderDeps): Sender {
  // A look-up occupies a thread of the pool that the stores need as well.
  const lookUps = createSemaphore({ places: tuning.lookUps, waitMs: tryMs });

  async function judgedAddresses(host: string): Promise<LookupAddress[]> {
    const leave = await lookUps.enter();
    if (leave === undefined) throw new Error(`there was no time to look up ${host}`);
    try {
      const found = await new Promise<LookupAddress[]>((resolve, reject) => {
        lookup(host, { all: true, verbatim: true }, (error, addresses) =>
          error === null ? resolve(addresses) : reject(new Error(`${host} could not be looked up: ${error.code}`)),
        );
      });
      const refused = found.find(({ address }) => !mayDial(address));
      if (refused !== undefined) throw new Error(`${host} is ${refused.address}, ${notPublic}`);
      return found;
    } finally {
      leave();
    }
  }

  async function post(
    target: URL,
    { headers, body }: Omit<Message, 'url'>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const addresses = literalIn(target) === undefined ? await judgedAddresses(target.hostname) : [];
    const bytes = Buffer.from(body);
    const options: RequestOptions & Pick<TcpNetConnectOpts, 'autoSelectFamilyAttemptTimeout'> = {
      method: 'POST',
      // No proxy, and no connection that outlives the try.
      agent: false,
      lookup: answering(addresses),
      // By itself, Node gives each address but the last one 250 ms, less than a far or lossy way takes.
      autoSelectFamilyAttemptTimeout: tryMs / 4,
      headers: { ...headers, 'content-length': bytes.length },
      signal,
    };
    return answerOf((target.protocol === 'https:' ? requestHttps : requestHttp)(target, options), bytes);
  }

  async function answered(target: URL, message: Omit<Message, 'url'>, ends: AbortSignal): Promise<Answer> {
    const response = await unlessAborted(post(target, message, ends), ends);
    // The status counts, even if the rest does not arrive.
    await unlessAborted(readSome(response), ends).catch(() => undefined);
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return { status, error: null, retryAfterMs: null };
    const retryAfterMs = retryAfterOf(response.headers['retry-after'], clock.now());
    return { ...failed(status, sentenceOf(status)), retryAfterMs };
  }

  return {
    async send({ url, headers, body }, signal) {
      const target = new URL(url);
      const literal = literalIn(target);
      if (literal !== undefined && !mayDial(literal)) return failed(null, `${literal} is ${notPublic}`);
      const timeout = AbortSignal.timeout(tryMs);
      try {
        return await withFirstOf([signal, timeout], (ends) => answered(target, { headers, body }, ends));
      } catch (error) {
        if (timeout.aborted) return failed(null, `no answer within ${tryMs / 1000} s`);
        if (signal.aborted) return failed(null, 'the service shut down meanwhile');
        return failed(null, error instanceof Error ? reasonOf(error) : 'unknown');
      }
    },
    close: () => lookUps.close(),
  };
}

/** Gives the socket the addresses that were checked, so that nothing is looked up twice. */
const answering =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (host, options, callback) => {
    const [first] = addresses;
    process.nextTick(() => {
      if (first === undefined) callback(new Error(`${host} has no address`), '');
      else if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };

const notPublic = 'not a public address; SVC_WEBHOOK_ALLOW may allow it';

function failed(status: number | null, error: string): Answer {
  return { status, error, retryAfterMs: null };
}

function sentenceOf(status: number): string {
  return status >= 300 && status < 400
    ? `the receiver answered ${status}; redirects are not followed`
    : `the receiver answered ${status}`;
}

/** An error for operators. A parser's message is not shown, because it may quote the answer. */
function reasonOf(error: Error & { readonly code?: string }): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return reasonOf(error.errors[0]);
  if (error.code === undefined) return error.message;
  return error.code.startsWith('HPE_') ? 'the answer is not HTTP' : `the connection failed: ${error.code}`;
}

function answerOf(request: ClientRequest, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve);
    // A 101. Without a listener, Node closes the connection silently.
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      response.destroy();
      resolve(response);
    });
    // Interim answers may go on for ever.
    let interim = 0;
    request.on('information', () => {
      interim += 1;
      if (interim > tuning.interimAnswers) request.destroy(new Error('too many interim answers came'));
    });
    // Also catches errors after the answer.
    request.on('error', reject);
    request.on('close', () => reject(new Error('the connection was closed without an answer')));
    request.end(body);
  });
}

/** Reads the answer up to the bound. @throws Error if it breaks off */
async function readSome(response: IncomingMessage): Promise<void> {
  let left: number = limits.webhooks.answerBytes;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      left -= chunk.length;
      if (left <= 0) break;
    }
  } finally {
    response.destroy();
  }
}
