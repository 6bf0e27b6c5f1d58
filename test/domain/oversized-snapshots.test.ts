/** The bound of one snapshot, with as many chains as it takes (`docs/contract/domain.md#scale-the-model-is-built-for`). */
import { describe, expect, it } from 'vitest';
import { oversizedInPieces } from '../../src/domain/compile/size.js';
import { runSync } from '../../src/kernel/pieces.js';
import { draftFleet } from '../../src/domain/fleet/fleet.js';
import * as f from '../support/fleet.js';

describe('a command that would make a snapshot too large', () => {
  it('is refused with the node and the size; disabled chains do not count', () => {
    const long = `${'n'.repeat(60)}.${'n'.repeat(60)}.${'n'.repeat(60)}.${'n'.repeat(60)}`;
    const names = (chain: number): readonly string[] =>
      Array.from({ length: 64 }, (_, index) => `c${chain}x${index}.${long}`);
    const { fleet } = f.given(f.createNode('a'));
    let refused: string | undefined;
    for (let chain = 0; chain < 1000 && refused === undefined; chain += 1) {
      f.performAll(fleet, [f.createChain(`c${chain}`, [f.hop('a', 80, { server_names: names(chain) })])]);
      const deploy = f.deployChain(`c${chain}`);
      if (chain >= 480) {
        // Slow for a large node.
        const draft = draftFleet(fleet);
        const deployed = f.perform(draft.state, deploy);
        refused = deployed.kind === 'written' ? runSync(oversizedInPieces(draft.state, deployed.touched))?.message : '';
        draft.drop();
      }
      if (refused === undefined) f.performAll(fleet, [deploy]);
    }
    // 8 MiB of rules of about 16 KiB each.
    expect(refused).toMatch(/node "a" would be \d{7} bytes, more than the 8388608/);
    expect(fleet.contributors.get(f.nodeId('a')).size).toBeGreaterThan(450);
    const off = f.perform(fleet, f.updateChain('c0', { enabled: false }));
    expect(off.kind === 'written' && runSync(oversizedInPieces(fleet, off.touched))).toBeUndefined();
  });
});
