/** What hangs on an AbortSignal, which must be nothing once its users are done if it lives as long as the process. */
import { getEventListeners } from 'node:events';

export function attachedTo(signal: AbortSignal): readonly unknown[] {
  // Where `AbortSignal.any` remembers what depends on a signal.
  const symbols = Object.getOwnPropertySymbols(signal);
  const dependants = symbols.find(({ description }) => description === 'kDependantSignals');
  const among = dependants === undefined ? undefined : Reflect.get(signal, dependants);
  return [...getEventListeners(signal, 'abort'), ...((among ?? []) as Iterable<unknown>)];
}
