/** What `log:verify` finds of the log chains of a data folder, without a process of its own. */
import { problemsOf, proveLog, sourceOfStore } from '../../scripts/maintenance/proof.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { headText } from '../../src/security/log-chain/log-chain.js';
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
    const streams = await proveLog(sourceOfStore(stores.eventStore), loaded.value.masterKey, [], signal);
    const heads = streams.flatMap(({ head }) => (head === undefined ? [] : headText(head)));
    return { problems: problemsOf(streams), heads, streams };
  } finally {
    await stores.close();
  }
}
