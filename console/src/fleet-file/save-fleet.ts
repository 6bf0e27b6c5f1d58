/** Saves the fleet as files, one for each set. */
import { api, dataOf } from '../shared/api/client.js';
import { saveFile } from '../shared/save-file.js';
import { text } from './fleet-file.text.js';

/** @param set absent: all sets @returns how many files it saved @throws Refusal */
export async function saveFleet(set?: string): Promise<number> {
  const { documents } = await dataOf(api.GET('/api/fleet/export', { params: { query: { set } } }));
  for (const { set: name, document } of documents) {
    saveFile(`${name ?? text.unowned}.yaml`, 'application/yaml', document);
  }
  return documents.length;
}
