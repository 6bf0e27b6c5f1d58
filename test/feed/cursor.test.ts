/** Cursors as text. Cites `docs/contract/automation.md#event-feed`. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCursors, feedStreams, shortId } from '../../src/feed/cursor.js';
import { eventOf } from '../support/recorded-events.js';

const cursors = createCursors('an installation');
const event = fc
  .record({
    stream: fc.constantFrom(...feedStreams),
    revision: fc.nat({ max: 2 ** 48 - 1 }),
    position: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    id: fc.uuid(),
  })
  .map((place) => ({ ...eventOf(1), ...place }));

test('a cursor is visible ASCII without a full stop, and says again what it was made of', () => {
  fc.assert(
    fc.property(event, (one) => {
      const cursor = cursors.of(one);
      expect(cursor).toMatch(/^[\x21-\x2d\x2f-\x7e]{1,128}$/);
      const { stream, revision, position } = one;
      expect(cursors.read(cursor)).toEqual({ stream, revision, position, event: shortId(one.id) });
    }),
  );
});

test('another character in it, or one more or less, makes it malformed; another installation finds it foreign', () => {
  fc.assert(
    fc.property(event, fc.nat(), fc.constantFrom('A', 'z', '_', '.', ''), (one, at, character) => {
      const cursor = cursors.of(one);
      const place = at % cursor.length;
      const bent = cursor.slice(0, place) + character + cursor.slice(place + 1);
      fc.pre(bent !== cursor);
      expect(cursors.read(bent)).toBe('malformed');
      expect(cursors.read(`${cursor}A`)).toBe('malformed');
      expect(createCursors('another').read(cursor)).toBe('foreign');
    }),
  );
  for (const text of ['', 'start', 'now', '0', '%00', 'ü']) expect(cursors.read(text)).toBe('malformed');
});
