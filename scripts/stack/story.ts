/** Prints a run as numbered steps with their times; in colour only on a terminal. */

export interface Story {
  /** A line between the steps. */
  note(text: string): void;
  /** Runs a step, prints its text and returns its `value`. Rethrows what a failing step throws. */
  step<T>(title: string, run: () => Promise<string | { readonly value: T; readonly text: string }>): Promise<T>;
  end(text: string): void;
  fail(error: unknown, details: string): void;
}

export function createStory(title: string, out: NodeJS.WriteStream = process.stdout): Story {
  const colour = out.isTTY === true && process.env['NO_COLOR'] === undefined;
  const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const print = (text: string): void => {
    out.write(`${text}\n`);
  };
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`.padStart(8);
  const began = performance.now();
  let number = 0;
  print(`\n${paint(1, title)}\n`);
  return {
    note: (text) => print(`${text}\n`),
    async step<T>(text: string, run: () => Promise<string | { readonly value: T; readonly text: string }>): Promise<T> {
      number += 1;
      const at = performance.now();
      try {
        const result = await run();
        const detail = typeof result === 'string' ? result : result.text;
        print(`${paint(32, '✔')} ${String(number).padStart(2)}  ${paint(2, seconds(performance.now() - at))}  ${text}`);
        print(`                  ${paint(2, detail)}`);
        return (typeof result === 'string' ? undefined : result.value) as T;
      } catch (error) {
        print(`${paint(31, '✘')} ${String(number).padStart(2)}  ${paint(2, seconds(performance.now() - at))}  ${text}`);
        throw error;
      }
    },
    end(text) {
      print(`\n${paint(32, 'Every step succeeded')} in ${seconds(performance.now() - began).trim()}. ${text}\n`);
    },
    fail(error, details) {
      print(`\n${paint(31, 'A step failed')}: ${error instanceof Error ? error.message : String(error)}`);
      if (details.trim() !== '') print(`\nThe last lines of the service:\n${details}`);
    },
  };
}
