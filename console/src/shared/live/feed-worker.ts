/** The worker that holds the one stream of a browser and tells all of its tabs (`docs/contract/console.md#rules`). */
import { openFeedStream } from './stream.js';

const ports = new Set<MessagePort>();
const stream = openFeedStream((message) => {
  for (const port of ports) port.postMessage(message);
});

/** What a tab sends: that somebody is signed in, or that it closes. */
export type TabMessage = 'start' | 'bye';

addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port === undefined) return;
  port.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
    if (data === 'bye') ports.delete(port);
    else {
      ports.add(port);
      stream.start();
      port.postMessage({ kind: 'state', state: stream.state() });
    }
  });
  port.start();
});
