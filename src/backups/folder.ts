/**
 * The folder of backups: which files in it are backups of this installation, and which were left half written by an
 * instance that ended. Everything else in it is left alone. Implements `docs/contract/joining.md#backups`.
 */
import { mkdir, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isOfFuture } from '../kernel/clock.js';
import { syncFolder } from '../kernel/files.js';

export interface BackupFile {
  readonly file: string;
  /** When its export began, in whole seconds: milliseconds since the epoch. */
  readonly at: number;
}

export interface BackupFolder {
  /** Creates the folder if it is missing, and removes what was left half written. @returns the backups, in any order */
  open(): Promise<readonly BackupFile[]>;
  bytesOf(backup: BackupFile): Promise<number>;
  /** Where to write a backup; `log-archive` also writes to this path with `.part` appended. */
  draftOf(backup: BackupFile): string;
  /** Turns a verified draft into a backup. */
  keep(backup: BackupFile): Promise<void>;
  /** Removes the draft, if there is one. */
  discard(backup: BackupFile): Promise<void>;
  remove(backup: BackupFile): Promise<void>;
}

const draftEnding = '.unverified';

/** @param at milliseconds since the epoch */
export function backupAt(installationId: string, at: number): BackupFile {
  const stamp = new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return { file: `backup-${installationId}-${stamp}.svclog`, at: Math.floor(at / 1000) * 1000 };
}

/**
 * The backups beyond the newest `keep`. Those of the future count as the oldest.
 * @param made the newest, whatever its name says
 */
export function outdated(
  others: readonly BackupFile[],
  { made, keep, now }: { readonly made: BackupFile; readonly keep: number; readonly now: number },
): readonly BackupFile[] {
  const rank = ({ at }: BackupFile): number => (isOfFuture(at, now) ? Number.NEGATIVE_INFINITY : at);
  const before = others.filter(({ file }) => file !== made.file).toSorted((a, b) => rank(b) - rank(a) || b.at - a.at);
  return before.slice(keep - 1);
}

export function backupFolder(dir: string, installationId: string): BackupFolder {
  const name = new RegExp(
    `^backup-${installationId}-(\\d{4})(\\d\\d)(\\d\\d)T(\\d\\d)(\\d\\d)(\\d\\d)Z\\.svclog(${draftEnding}(?:\\.part)?)?$`,
  );
  const draftOf = ({ file }: BackupFile): string => join(dir, `${file}${draftEnding}`);
  const removeFile = (file: string): Promise<void> => rm(join(dir, file), { force: true });
  return {
    draftOf,
    async open() {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const backups: BackupFile[] = [];
      for await (const { name: file } of await opendir(dir)) {
        const [, year, month, day, hour, minute, second, draft] = name.exec(file) ?? [];
        if (draft !== undefined) await removeFile(file);
        const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
        if (draft === undefined && !Number.isNaN(at)) backups.push({ file, at });
      }
      return backups;
    },
    bytesOf: async ({ file }) => (await stat(join(dir, file))).size,
    async keep(backup) {
      await rename(draftOf(backup), join(dir, backup.file));
      await syncFolder(dir);
    },
    async discard(backup) {
      const draft = `${backup.file}${draftEnding}`;
      await removeFile(`${draft}.part`);
      await removeFile(draft);
    },
    remove: ({ file }) => removeFile(file),
  };
}
