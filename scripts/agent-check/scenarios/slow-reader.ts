/** A next hop that reads nothing: its client must be held back, and nothing may be lost. */
import { applied, firstSession, type Scenario } from '../play.js';
import { arrivesWithinMs, holdsSoon, openUpstream } from '../peers.js';
import { freePort, makeSnapshot } from '../site.js';

/** More than the buffers of two loopback connections and an agent hold. */
const mostBytes = 64 * 1024 * 1024;
const chunk = Buffer.alloc(256 * 1024);
/** A write that waits so long is held back. */
const heldBackMs = 1_000;

export const slowReader: Scenario = {
  name: 'slow-reader',
  about: 'a client sends to a next hop that does not read, which then reads everything',
  async play(play) {
    const { node, check } = play;
    await firstSession(play);
    const [upstream, port] = [await openUpstream(), await freePort()];
    try {
      await applied(play, makeSnapshot(node, { upstream: upstream.address }, { ports: [port] }));
      const joined = await upstream.join(port);
      check('relays', joined !== undefined, `a client of port ${port} does not reach the next hop`);
      if (joined === undefined) return;
      const { client, server } = joined;
      server.socket.pause();
      let sent = 0;
      let isHeldBack = false;
      while (sent < mostBytes && !isHeldBack && client.state === 'open') {
        isHeldBack = !(await isTaken((done) => client.socket.write(chunk, done)));
        sent += chunk.length;
      }
      check('backpressure', isHeldBack, `it took ${sent >> 20} MiB for a next hop that read nothing`);
      server.socket.resume();
      let before = -1;
      // While bytes still move.
      while (server.receivedBytes > before && server.receivedBytes < sent) {
        before = server.receivedBytes;
        await holdsSoon(() => server.receivedBytes > before);
      }
      const observed = `${server.receivedBytes} of ${sent} bytes arrived, the last ones over ${arrivesWithinMs / 1000} s ago`;
      check('relays', server.receivedBytes === sent, observed);
    } finally {
      upstream.close();
    }
  },
};

/** Whether a write is done soon. */
function isTaken(write: (done: () => void) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), heldBackMs);
    write(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
