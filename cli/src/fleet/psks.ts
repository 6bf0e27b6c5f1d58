/**
 * The PSKs that an apply issues, kept in environment files that are created before it; a PSK that cannot be kept is printed.
 * Implements `docs/contract/automation.md#the-command-line-svcctl`, `--psk-dir`.
 */
import { randomUUID } from 'node:crypto';
import { environmentOf } from '../agent-environment.js';
import { Failure } from '../exit.js';
import { holdSecrets, say, shown, tellSecrets } from '../output.js';
import { findOne, typeOf } from '../resources.js';
import { dataOf, type Api, type Schemas } from '../service.js';
import { prepareFile, type PreparedFile } from './kept-files.js';
import type { Plan } from './show.js';

export type Applied = Schemas['FleetApplied'];

export interface PreparedPsks {
  /** Writes the issued PSKs, and prints those that cannot be kept. @returns the paths of the files */
  keep(api: Api, applied: Applied, endpoint: string): Promise<readonly string[]>;
  drop(): void;
}

/** A file for each node that the plan creates. @throws Failure usage when one could not be kept */
export function preparePsks(folder: string, { steps }: Plan): PreparedPsks {
  const files = new Map<string, PreparedFile>();
  const drop = (): void => {
    for (const file of files.values()) file.drop();
    files.clear();
  };
  try {
    // Checked even when there is no new node.
    prepareFile(folder, randomUUID(), '.env').drop();
    for (const { action, resource } of steps) {
      if (action !== 'create' || resource.type !== 'node') continue;
      files.set(resource.name, prepareFile(folder, resource.name, '.env'));
    }
  } catch (error) {
    drop();
    throw error;
  }
  return {
    drop,
    async keep(api, applied, endpoint) {
      const ids = new Map(applied.steps.map(({ resource }) => [`${resource.type} ${resource.name}`, resource.id]));
      const issued = applied.control_psks.flatMap(({ node, control_psk: psk }) =>
        psk === null ? [] : [{ node, psk }],
      );
      // They are printed if the command fails from here on.
      const lineOf = (node: string, psk: string): string => `SVC_CONTROL_PSK of ${shown(node)}: ${psk}`;
      const kept: string[] = [];
      const unkept: string[] = [];
      const keepOne = async (node: string, psk: string): Promise<void> => {
        try {
          const id = ids.get(`node ${node}`) ?? (await findOne(api, typeOf('nodes'), node)).id;
          const file = files.get(node) ?? prepareFile(folder, node, '.env');
          file.keep(environmentOf(id, endpoint, psk));
          files.delete(node);
          kept.push(file.path);
        } catch (error) {
          say(
            `svcctl: the PSK of ${shown(node)} cannot be kept: ${shown(error instanceof Error ? error.message : error)}`,
          );
          unkept.push(lineOf(node, psk));
          holdSecrets(unkept);
        }
      };
      for (const { node, psk } of issued) await keepOne(node, psk);
      // The answer to a retry lacks the PSKs: nobody has seen them, so new ones are issued.
      for (const { node } of applied.control_psks.filter((one) => one.control_psk === null)) {
        const psk = await issuedAnew(api, node);
        if (psk !== undefined) await keepOne(node, psk);
      }
      drop();
      if (unkept.length > 0) {
        await tellSecrets(unkept);
        process.exitCode = 1;
      }
      return kept;
    },
  };
}

async function issuedAnew(api: Api, node: string): Promise<string | undefined> {
  try {
    const { id } = await findOne(api, typeOf('nodes'), node);
    const { control_psk } = await dataOf(api.POST('/api/nodes/{id}/psk', { params: { path: { id } } }));
    if (control_psk !== null) return control_psk;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  say(`svcctl: the PSK of ${shown(node)} did not arrive; issue another: svcctl psk ${shown(node)}`);
  process.exitCode = 1;
  return undefined;
}
