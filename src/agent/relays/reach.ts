/**
 * Finds out whether a next hop can be reached, without traffic: a TCP connection, inside TLS or REALITY where its route
 * has them; ENC with its handshake. For health checks and diagnostics.
 */
import type { Clock } from '../../kernel/clock.js';
import { unreachable } from '../../kernel/errors.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { DialSecurity, Transport } from '../plan/plan.js';
import { openReality } from '../reality/handshake.js';
import { dial } from './dial.js';
import { relayLimits } from './limits.js';
import { createMeter } from './meters.js';
import { connectTls } from './tls.js';
import { startFlow } from './udp-flow.js';

const pollMs = 100;

export interface Way {
  readonly endpoint: HostPort;
  readonly transport: Transport;
  readonly security: DialSecurity;
}

/**
 * Tries one endpoint. An abort of the signal ends the attempt.
 * @returns undefined if it was reached, or why not. Over raw UDP, that its name resolves is all that can be known.
 */
export async function reach(way: Way, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const { endpoint, transport, security } = way;
  if (transport === 'udp') return reachUdp(way, clock, signal);
  const socket = await dial(endpoint, signal);
  if (typeof socket === 'string') return socket;
  try {
    switch (security.kind) {
      case 'raw':
        return undefined;
      case 'tls': {
        const outcome = await connectTls(socket, security);
        if (outcome.kind === 'wrong_pin') return `its key is not pinned: ${outcome.pin ?? 'no certificate'}`;
        return outcome.kind === 'failed' ? outcome.reason : undefined;
      }
      case 'reality': {
        const opened = await openReality(socket, security.access, clock, relayLimits.tlsHandshakeMs);
        return opened.ok ? undefined : opened.error;
      }
      case 'noise':
        return 'ENC is not dialled over TCP';
      default:
        return unreachable(security);
    }
  } finally {
    socket.destroy();
  }
}

function reachUdp({ endpoint, security }: Way, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = (why: string | undefined): void => {
      clearInterval(poll);
      signal.removeEventListener('abort', abort);
      resolve(why);
      flow.end(false);
    };
    const abort = (): void => end('aborted');
    const failed =
      security.kind === 'noise'
        ? 'no answer to the ENC handshake'
        : 'its name does not resolve, or there is no way to it';
    const meter = createMeter();
    const flow = startFlow({
      endpoint,
      security,
      meter,
      link: { meter, connected: () => undefined, failed: () => undefined },
      clock,
      settled: (ms) => end(ms === undefined ? failed : undefined),
      reply: () => true,
      ended: () => undefined,
    });
    const poll = setInterval(() => flow.poll(), pollMs);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
}
