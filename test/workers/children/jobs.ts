/** The program of the threads of `pool.test.ts`. */
import { serveJobs } from '../../../src/workers/thread.js';

let served = 0;

serveJobs({
  async echo(port) {
    served += 1;
    port.send({ said: await port.receive(), served });
  },
  async echoAll(port) {
    for (let message = await port.receive(); message !== 'end'; message = await port.receive()) port.send(message);
  },
  async fail() {
    throw new Error('it is broken');
  },
  async crash() {
    process.nextTick(() => {
      throw new Error('out of the blue');
    });
    await new Promise(() => undefined);
  },
  async silent() {
    await new Promise(() => undefined);
  },
  async busy() {
    for (;;);
  },
  async returns() {},
  async environment(port) {
    port.send(Object.keys(process.env));
  },
});
