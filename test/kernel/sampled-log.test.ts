/** A log that floods cannot fill: what is written, what is summed up, and that no event goes uncounted. */
import { afterEach, describe, expect, it } from 'vitest';
import { createSampledLog } from '../../src/kernel/sampled-log.js';
import { createManualClock } from '../support/manual-clock.js';

interface Line {
  readonly reason?: string;
  readonly address?: string;
  readonly left_out?: number | Readonly<Record<string, number>>;
  readonly [field: string]: unknown;
}

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const log of opened.splice(0)) log.close();
});

function sampled() {
  const clock = createManualClock();
  const lines: (Line & { readonly message: string })[] = [];
  const log = createSampledLog({ clock, write: (fields, message) => lines.push({ ...fields, message }) });
  opened.push(log);
  /** Events that are in a line or in a number of a line. */
  const told = (): number => {
    let sum = 0;
    for (const { left_out: left, address, reason, detail } of lines) {
      if (typeof left === 'object') for (const count of Object.values(left)) sum += count;
      else sum += left ?? 0;
      if (address !== undefined && reason !== undefined && detail !== undefined) sum += 1;
    }
    return sum;
  };
  const size = (): number => lines.reduce((sum, line) => sum + JSON.stringify(line).length + 60, 0);
  return { clock, lines, log, told, size };
}

const refused = (address: string, reason = 'refused') => ({ reason, address, detail: 'x' });

describe('a sampled log', () => {
  it('writes one line a second for a reason and address, with the number left out since', () => {
    const { clock, lines, log } = sampled();
    for (let i = 0; i < 50; i += 1) log.note(refused('10.0.0.1'), 'session refused');
    expect(lines).toEqual([{ ...refused('10.0.0.1'), message: 'session refused' }]);
    clock.advance(1_000);
    log.note(refused('10.0.0.1'), 'session refused');
    expect(lines[1]).toEqual({ ...refused('10.0.0.1'), left_out: 49, message: 'session refused' });
    clock.advance(1_000);
    log.note(refused('10.0.0.1'), 'session refused');
    expect(lines[2]).toEqual({ ...refused('10.0.0.1'), message: 'session refused' });
  });

  it('keeps reasons apart, and addresses, of IPv6 the /64', () => {
    const { lines, log } = sampled();
    log.note(refused('10.0.0.1'), 'a');
    log.note(refused('10.0.0.2'), 'a');
    log.note(refused('10.0.0.1', 'malformed'), 'b');
    log.note(refused('2001:db8::1'), 'a');
    log.note(refused('2001:db8::2'), 'a');
    log.note(refused('::ffff:10.0.0.1'), 'a');
    expect(lines.map(({ reason, address }) => `${reason} ${address}`)).toEqual([
      'refused 10.0.0.1',
      'refused 10.0.0.2',
      'malformed 10.0.0.1',
      'refused 2001:db8::1',
    ]);
  });

  it('tells what was left out of a flood that has ended', () => {
    const { clock, lines, log, told } = sampled();
    for (let i = 0; i < 50; i += 1) log.note(refused('10.0.0.1'), 'session refused');
    clock.advance(10_000);
    log.flush();
    expect(lines[1]).toEqual({ reason: 'refused', address: '10.0.0.1', left_out: 49, message: 'session refused' });
    expect(told()).toBe(50);
    log.flush();
    expect(lines).toHaveLength(2);
  });

  it('tells the rest when it is closed', () => {
    const { log, told } = sampled();
    for (let i = 0; i < 50; i += 1) log.note(refused('10.0.0.1'), 'session refused');
    log.close();
    expect(told()).toBe(50);
  });

  it('grows by less than 64 KiB a minute, whatever the number of addresses, and no event is lost to the numbers', () => {
    const { clock, lines, log, told, size } = sampled();
    let events = 0;
    for (let second = 0; second < 60; second += 1) {
      for (let i = 0; i < 500; i += 1) {
        const address = `10.${second}.${i >> 8}.${i & 255}`;
        log.note({ ...refused(address, i % 2 === 0 ? 'refused' : 'malformed'), more: 'y'.repeat(100_000) }, 'm');
        events += 1;
      }
      clock.advance(1_000);
      if (second % 10 === 9) log.flush();
    }
    expect(size()).toBeLessThan(64 * 1024 + 16 * 1024 + 2_048);
    expect(size()).toBeGreaterThan(32 * 1024);
    const sums = lines.filter(({ left_out: left }) => typeof left === 'object');
    expect(sums.length).toBeGreaterThan(0);
    expect(sums.length).toBeLessThanOrEqual(6);
    expect(Object.keys(sums[0]?.left_out ?? {}).sort()).toEqual(['malformed', 'refused']);
    expect(told()).toBe(events);
  });

  it('writes lines again once a flood is over', () => {
    const { clock, lines, log } = sampled();
    for (let i = 0; i < 2_000; i += 1) log.note(refused(`10.0.${i >> 8}.${i & 255}`), 'm');
    const during = lines.length;
    expect(during).toBeLessThan(200);
    clock.advance(10_000);
    log.flush();
    log.note(refused('192.0.2.1'), 'm');
    expect(lines.at(-1)).toMatchObject({ address: '192.0.2.1' });
  });

  it('counts every event by its reason, and an endless number of reasons as other', () => {
    const { log } = sampled();
    for (let i = 0; i < 30; i += 1) log.note(refused('10.0.0.1'), 'm');
    for (let i = 0; i < 100; i += 1) log.note(refused('10.0.0.1', `invented_${i}`), 'm');
    expect(log.counts().get('refused')).toBe(30);
    expect(log.counts().size).toBeLessThanOrEqual(65);
    expect([...log.counts().values()].reduce((sum, count) => sum + count, 0)).toBe(130);
  });
});
