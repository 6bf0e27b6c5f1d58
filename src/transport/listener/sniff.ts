/**
 * Reads the first bytes of a socket until its protocol is clear: from a balancer the PROXY header, then the preface. Puts
 * back every byte that belongs to the protocol. The judgement is in `first-bytes.ts` and `proxy-header.ts`, what follows
 * from it in `listener.ts`.
 */
import type { Socket } from 'node:net';
import { unreachable } from '../../kernel/errors.js';
import { judgeFirstBytes } from './first-bytes.js';
import { readProxyHeader } from './proxy-header.js';

export type Sniffed =
  | {
      /** `other`: whatever it is, it is unread, as h2c is. */
      readonly kind: 'h2c' | 'other';
      /** The address that a balancer named, if one did. */
      readonly client: string | undefined;
    }
  /** A balancer did not begin with a PROXY header, or with one that is malformed. */
  | { readonly kind: 'no_proxy_header' }
  /** Ended or failed before the protocol was clear. */
  | { readonly kind: 'gone' };

export interface Sniffing {
  /** Settles for `other`, as if the bytes that are missing would never come; without effect while a header is missing. */
  giveUp(): void;
}

interface SniffOptions {
  /** The peer is a balancer, so a PROXY header comes first. */
  readonly expectHeader: boolean;
  /** Whether h2c is looked for; otherwise all that follows the header is `other`, even nothing. */
  readonly lookForH2c: boolean;
}

/**
 * Calls `done` once; whoever loses patience closes the socket or gives up. For `h2c` and `other` the socket is then paused,
 * with its first bytes and what follows unread.
 */
export function sniff(
  socket: Socket,
  { expectHeader, lookForH2c }: SniffOptions,
  done: (result: Sniffed) => void,
): Sniffing {
  let bytes: Buffer = Buffer.alloc(0);
  let headerExpected = expectHeader;
  let client: string | undefined;

  /** Takes the header off the bytes. @returns false while bytes are missing, or if it has ended the sniffing */
  const passHeader = (): boolean => {
    const header = readProxyHeader(bytes);
    switch (header.kind) {
      case 'incomplete':
        return false;
      case 'malformed':
        finish({ kind: 'no_proxy_header' });
        return false;
      case 'complete':
        headerExpected = false;
        client = header.client;
        bytes = bytes.subarray(header.length);
        return true;
      default:
        return unreachable(header);
    }
  };
  const read = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    if (headerExpected && !passHeader()) return;
    const protocol = lookForH2c ? judgeFirstBytes(bytes) : 'foreign';
    if (protocol === 'undecided') return;
    handOver(protocol === 'h2c' ? 'h2c' : 'other');
  };
  const handOver = (kind: 'h2c' | 'other'): void => {
    socket.pause();
    socket.off('data', read);
    if (bytes.length > 0) socket.unshift(bytes);
    finish({ kind, client });
  };
  const gone = (): void => finish({ kind: 'gone' });
  let finished = false;
  const finish = (result: Sniffed): void => {
    finished = true;
    socket.off('data', read);
    socket.off('end', gone);
    socket.off('close', gone);
    done(result);
  };
  const sniffing: Sniffing = {
    giveUp() {
      if (!finished && !headerExpected) handOver('other');
    },
  };
  if (!headerExpected && !lookForH2c) {
    sniffing.giveUp();
    return sniffing;
  }
  socket.on('data', read);
  socket.on('end', gone);
  socket.on('close', gone);
  return sniffing;
}
