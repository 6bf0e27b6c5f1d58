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
      readonly kind: 'h2c';
      /** The address that a balancer named, if one did. */
      readonly client: string | undefined;
    }
  | { readonly kind: 'foreign' }
  /** A balancer did not begin with a PROXY header, or with one that is malformed. */
  | { readonly kind: 'no_proxy_header' }
  /** Ended or failed before the protocol was clear. */
  | { readonly kind: 'gone' };

/**
 * Calls `done` once; whoever loses patience closes the socket. For `h2c` the socket is then paused, with its preface and
 * what follows unread.
 * @param expectHeader the peer is a balancer, so a PROXY header comes first
 */
export function sniff(socket: Socket, expectHeader: boolean, done: (result: Sniffed) => void): void {
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
    const protocol = judgeFirstBytes(bytes);
    if (protocol === 'undecided') return;
    if (protocol === 'foreign') return finish({ kind: 'foreign' });
    socket.pause();
    socket.off('data', read);
    socket.unshift(bytes);
    finish({ kind: 'h2c', client });
  };
  const gone = (): void => finish({ kind: 'gone' });
  const finish = (result: Sniffed): void => {
    socket.off('data', read);
    socket.off('end', gone);
    socket.off('close', gone);
    done(result);
  };
  socket.on('data', read);
  socket.on('end', gone);
  socket.on('close', gone);
}
