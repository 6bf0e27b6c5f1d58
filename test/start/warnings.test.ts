/** Node's warnings are in the log, but for the one that an operator cannot change. */
import { afterEach, beforeEach, test } from 'vitest';
import { logWarnings } from '../../src/app/uncaught.js';
import { eventually } from '../support/eventually.js';

let before: ((warning: Error) => void)[];
beforeEach(() => void (before = process.listeners('warning')));
afterEach(() => {
  process.removeAllListeners('warning');
  for (const listener of before) process.on('warning', listener);
});

test('a warning of Node is in the log, and that of a server name that is an IP address is not', async () => {
  const logged: unknown[] = [];
  logWarnings({ warn: (fields, message) => void logged.push([fields['warning'], fields['code'], message]) });
  process.emitWarning('a server name that is an IP address', 'DeprecationWarning', 'DEP0123');
  process.emitWarning('something else', 'DeprecationWarning', 'DEP0001');
  await eventually(() => logged).toEqual([['DeprecationWarning', 'DEP0001', 'something else']]);
});
