/** Backups on the core: their settings, their thread, and their metrics. See `docs/architecture.md`. */
import { startBackups as start, type Backups } from '../backups/backups.js';
import { writeArchive } from '../backups/write-archive.js';
import { gauge, type NumberSource } from '../instance/metrics.js';
import type { Config } from './config/config.js';
import type { Core } from './core.js';

export type BackupParts = Awaited<ReturnType<typeof startBackups>>;

/** @param entry the program of the thread, for tests @throws ServiceError `unavailable` */
export async function startBackups(core: Core, { backups: settings }: Config, entry?: URL) {
  const { eventStore, readStore, instanceId, identity, clocks, logChain, logger } = core;
  const { installationId } = identity;
  const writer = { eventStore, installationId, chainKey: logChain.key, entry };
  const service = await start({
    settings,
    readStore,
    instanceId,
    installationId,
    clock: clocks.shared,
    clockProblem: () => clocks.problems()[0],
    write: (path, exportedAt, signal) => writeArchive(writer, path, exportedAt, signal),
    logger,
  });
  return { service, metrics: () => backupMetrics(service) };
}

function backupMetrics({ last }: Pick<Backups, 'last'>): readonly NumberSource[] {
  return [
    gauge(
      'svc_backup_last_success_timestamp_seconds',
      'When the newest backup was made, by whichever instance; 0 while there is none, absent where backups are off.',
      () => {
        const newest = last();
        return newest && newest.at / 1000;
      },
    ),
    gauge('svc_backup_bytes', 'Size of the newest backup; absent where backups are off.', () => last()?.bytes),
  ];
}
