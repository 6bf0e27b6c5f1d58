/**
 * Handles client connections outside node:http: a WebSocket, which becomes a relay once the next hop has switched, and
 * hand-written answers where there is no ServerResponse.
 */
import { STATUS_CODES, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { responseHeaders, valuesOf } from './http-headers.js';
import { relayLimits } from './limits.js';
import { plainSide, splice, type Side } from './splice.js';

export function headText(firstLine: string, headers: readonly string[]): Buffer {
  const lines = [firstLine];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at] ?? ''}: ${headers[at + 1] ?? ''}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** The head of a request as bytes, with the given headers. */
export function sendHead(request: IncomingMessage, headers: readonly string[]): Buffer {
  return headText(`${request.method ?? ''} ${request.url ?? ''} HTTP/${request.httpVersion}`, headers);
}

/** Answers with a status and ends the connection. */
export function answer(socket: Socket, status: number): void {
  const reason = STATUS_CODES[status] ?? '';
  const body = `${status} ${reason}\n`;
  const headers = ['Content-Type', 'text/plain', 'Content-Length', String(body.length), 'Connection', 'close'];
  socket.end(Buffer.concat([headText(`HTTP/1.1 ${status} ${reason}`, headers), Buffer.from(body)]));
  // Briefly reads and drops further bytes from the client, so that a reset does not lose the answer.
  socket.resume();
  socket.setTimeout(relayLimits.httpHeadersMs, () => socket.destroy());
}

interface Upgrade {
  readonly socket: Socket;
  /** Bytes that the client has sent after its request. */
  readonly head: Buffer;
  readonly side: Side;
  /** The request to the next hop, not ended yet. */
  readonly outgoing: ClientRequest;
  /** Called whenever bytes were moved. */
  readonly count: () => void;
}

/**
 * Sends the request and joins both connections if the next hop switches protocols; otherwise passes its answer on.
 * @returns true if the WebSocket, or the answer, ended regularly
 */
export function joinUpgraded({ socket, head, side, outgoing, count }: Upgrade): Promise<boolean> {
  return new Promise((resolve) => {
    let answered = false;
    const give = (): void => {
      if (!answered) answer(socket, 502);
      answered = true;
      outgoing.destroy();
      resolve(false);
    };
    const gone = (): void => {
      outgoing.destroy();
      side.reset();
      resolve(false);
    };
    socket.once('close', gone);
    side.socket.setTimeout(relayLimits.httpAnswerMs, () => {
      if (!answered) answer(socket, 504);
      answered = true;
      outgoing.destroy();
      resolve(false);
    });
    outgoing.on('error', give);
    outgoing.once('close', () => {
      if (!answered) give();
    });
    outgoing.once('upgrade', (incoming, _socket, upstreamHead: Buffer) => {
      answered = true;
      socket.removeListener('close', gone);
      side.socket.setTimeout(0);
      const protocol = valuesOf(incoming.rawHeaders, 'upgrade').join(', ');
      const headers = [...responseHeaders(incoming.rawHeaders), 'Connection', 'Upgrade', 'Upgrade', protocol];
      socket.write(headText(`HTTP/1.1 101 ${incoming.statusMessage ?? 'Switching Protocols'}`, headers));
      socket.pause();
      side.stream.pause();
      if (head.length > 0) socket.unshift(head);
      if (upstreamHead.length > 0) side.stream.unshift(upstreamHead);
      void splice(plainSide(socket), side, { up: count, down: count }).then(resolve);
    });
    outgoing.once('response', (incoming) => {
      answered = true;
      const line = `HTTP/1.1 ${incoming.statusCode ?? 502} ${incoming.statusMessage ?? ''}`;
      socket.write(headText(line, [...responseHeaders(incoming.rawHeaders), 'Connection', 'close']));
      side.socket.setTimeout(relayLimits.httpIdleMs);
      incoming.on('error', () => socket.destroy());
      incoming.once('end', () => {
        socket.removeListener('close', gone);
        socket.once('close', () => resolve(incoming.complete));
        // Answered, a client may leave its own direction open.
        socket.setTimeout(relayLimits.httpHeadersMs, () => socket.destroy());
      });
      incoming.pipe(socket);
      socket.resume();
    });
    outgoing.end();
  });
}
