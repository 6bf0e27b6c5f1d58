/** The program of the threads of `threads.test.ts`: the node of the question says what they do. */
import { parentPort, workerData } from 'node:worker_threads';

const say = (said: object): void => parentPort?.postMessage(said);
const { nodeId } = workerData as { readonly nodeId: string };
let parts = 0;
parentPort?.on('message', (part: string | undefined) => {
  if (part === undefined) return say({ kind: 'compiled', snapshot: { parts } });
  parts += 1;
  say({ kind: 'more' });
});
switch (nodeId) {
  case 'throws':
    throw new Error('it is broken');
  case 'crashes':
    process.nextTick(() => {
      throw new Error('out of the blue');
    });
    break;
  case 'ends':
    process.exit(3);
    break;
  case 'busy':
    for (;;);
  case 'environment':
    say({ kind: 'compiled', snapshot: Object.keys(process.env) });
    break;
  case 'silent':
    break;
  default:
    say({ kind: 'ready', revision: -1 });
}
