/** What the navigation counts, and that a state looks the same wherever it is shown. */
import { describe, expect, test } from 'vitest';
import { chainsWrong, matters, nodesWrong } from '../../console/src/app/wrong.js';
import type { Stats } from '../../console/src/shared/dashboard.js';
import { known, states, type Kind } from '../../console/src/shared/ui/states.js';

const stats = (given: object): Stats => given as Stats;

describe('what is counted beside an entry', () => {
  test('given chains that are down, they are counted with the degraded ones, in the colour of the worst', () => {
    const health = (down: number) => stats({ l4_chains: { health: { ok: 9, degraded: 2, down, unknown: 1 } } });
    expect(chainsWrong(health(1))).toEqual({ count: 3, mood: 'bad' });
    expect(chainsWrong(health(0))).toEqual({ count: 2, mood: 'warning' });
  });

  test('given nodes that are offline and some that reject, both are counted', () => {
    expect(nodesWrong(stats({ nodes: { offline: 2, rejected: 1 } })).count).toBe(3);
  });

  test('given matters of several kinds, those of one are counted by their resources', () => {
    const given = [
      { kind: 'webhook_stopped', count: 2 },
      { kind: 'node_offline', count: 5 },
    ];
    expect(matters('webhook_stopped', 'warning')(stats({ matters: given }))).toEqual({ count: 2, mood: 'warning' });
  });
});

describe('the catalogue of states', () => {
  test('has one mood for a word, whatever it is said of', () => {
    const moods = new Map<string, string>();
    for (const kind of Object.keys(states) as Kind[]) {
      for (const [mood, word] of Object.values(states[kind])) {
        expect([word, moods.get(word) ?? mood]).toEqual([word, mood]);
        moods.set(word, mood);
      }
    }
  });

  test('given a state of a newer service, it is shown in its own word', () => {
    expect(known('node', 'asleep')).toEqual(['idle', 'asleep']);
  });
});
