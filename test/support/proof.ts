/** What `log:verify` finds of the log chains of a data folder, without a process of its own. */
import { proveLog, sourceOfStore } from '../../scripts/maintenance/proof.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { headText } from '../../src/domain/log-chain/heads.js';
import type { StreamProof } from '../../src/security/log-chain/prove.js';
import { loadMasterKey } from '../../src/security/master-key.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';

export interface FolderProof {
  readonly problems: readonly string[];
  readonly heads: readonly string[];
  readonly streams: readonly StreamProof[];
}

/** @param key the master key; that of the folder when absent */
export async function proof(dataDir: string, key?: string): Promise<FolderProof> {
  const stores = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  try {
    const loaded = await loadMasterKey({ inline: key, dataDir, mayCreate: false });
    if (!loaded.ok) throw new Error(loaded.error);
    const signal = new AbortController().signal;
    const proof = await proveLog(sourceOfStore(stores.eventStore), loaded.value.masterKey, [], signal);
    if (proof.kind === 'no_chain') return { problems: ['no log chain'], heads: [], streams: [] };
    const heads = proof.proofs.flatMap(({ head }) => (head === undefined ? [] : headText(head)));
    return { problems: proof.kind === 'damaged' ? proof.problems : [], heads, streams: proof.proofs };
  } finally {
    await stores.close();
  }
}
