/** The one clock of a page. */
import { afterEach, expect, test, vi } from 'vitest';
import { clock } from '../../console/src/shared/ui/now.js';

afterEach(() => {
  vi.useRealTimers();
});

test('given that nobody has looked at it for an hour, whoever looks then is told the time of then', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const later = Date.now() + 3_600_000;
  vi.setSystemTime(later);
  const end = clock.subscribe(() => undefined);
  expect(clock.now()).toBe(later);
  end();
});
