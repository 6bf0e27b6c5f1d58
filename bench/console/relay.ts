/**
 * A relay between the browser and the service that counts requests, and the bytes that the browser gets, including its
 * feed in a worker.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

export interface Relay {
  readonly url: string;
  /** Since the last call. */
  take(): { readonly requests: number; readonly bytes: number };
  close(): void;
}

/** A browser sends the head of a request in a packet of its own. */
const head = /^(?:GET|POST|PUT|DELETE) \/\S* HTTP\/1\.1\r\n/;

/** @param to where the service listens */
export async function openRelay(to: string): Promise<Relay> {
  const { hostname, port } = new URL(to);
  let [requests, bytes] = [0, 0];
  const server = createServer((browser) => {
    const service = connect(Number(port), hostname);
    browser.on('data', (chunk) => {
      if (head.test(chunk.toString('latin1', 0, 2_048))) requests += 1;
    });
    service.on('data', (chunk) => {
      bytes += chunk.length;
    });
    browser.on('error', () => service.destroy()).pipe(service);
    service.on('error', () => browser.destroy()).pipe(browser);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const taken = { requests, bytes };
      [requests, bytes] = [0, 0];
      return taken;
    },
    close: () => void server.close(),
  };
}
