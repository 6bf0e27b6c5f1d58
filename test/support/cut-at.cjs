/** Preloaded into an agent: ends it at the step of its work on files that `CUT_AT` counts to, half way into what it writes. */
const promises = require('node:fs/promises');

let left = Number(process.env.CUT_AT);
const cuts = () => left-- === 0;
const end = () => process.kill(process.pid, 'SIGKILL');

const around = (object, name, half = () => undefined) => {
  const original = object[name];
  object[name] = async function (...args) {
    if (cuts()) {
      await half.call(this, original, ...args);
      end();
      await new Promise(() => undefined);
    }
    return original.apply(this, args);
  };
};

for (const name of ['mkdir', 'rename', 'rm', 'readdir', 'stat']) around(promises, name);
const { open } = promises;
promises.open = async (...args) => {
  if (cuts()) end();
  const file = await open(...args);
  around(file, 'writeFile', (original, text) => original.call(file, text.slice(0, text.length / 2)));
  for (const name of ['sync', 'chown', 'close']) around(file, name);
  return file;
};
