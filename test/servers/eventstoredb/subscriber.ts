/** A streaming call as a subscription or a read sees it: flow control, and its end. */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { statusOf } from './calls.js';
import type { Subscriber } from './subscriptions.js';
import type { Plain } from './wire.js';

export type WriteCall = ServerWritableStream<Plain, Plain>;

export function subscriberOf(call: WriteCall): Subscriber {
  let closed = false;
  const listeners: (() => void)[] = [];
  const close = (): void => {
    if (closed) return;
    closed = true;
    for (const listener of listeners) listener();
  };
  call.on('cancelled', close);
  call.on('close', close);
  return {
    closed: () => closed,
    onClose: (listener) => listeners.push(listener),
    async write(message) {
      if (closed || call.write(message)) return;
      await new Promise<void>((resolve) => {
        call.once('drain', resolve);
        listeners.push(resolve);
      });
    },
    end(error) {
      if (closed) return;
      if (error === undefined) call.end();
      else call.emit('error', statusOf(error));
      close();
    },
  };
}
