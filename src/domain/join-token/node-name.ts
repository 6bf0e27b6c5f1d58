/** The name of a node that joined by itself. Pure. Implements `docs/contract/joining.md#join-tokens`, "Name". */
import { limits } from '../../kernel/limits.js';
import { nodeKey } from '../node/node.js';
import type { FleetView } from '../resource/fleet-view.js';
import { faultOfName } from '../resource/name.js';

const unfit = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Surrogate}]/gu;

/** Says what is wrong with a prefix, which begins a name: it may end with spaces. */
export const faultOfPrefix = (prefix: string): string | undefined => faultOfName(prefix.replace(/ +$/, ''));

/** A name that no node has. @param given what the machine calls itself, any text */
export function joinedName(fleet: Pick<FleetView, 'idOfName'>, prefix: string | null, given: string): string {
  const readable = given.replace(unfit, '-').trim();
  // Cut before NFC, which takes quadratic time; no character of it stands for more than eight code units.
  const wanted = `${prefix ?? ''}${faultOfName(readable) === undefined ? readable : 'node'}`
    .slice(0, 8 * limits.rest.nameChars)
    .normalize('NFC');
  const characters = [...wanted];
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const name = `${characters
      .slice(0, limits.rest.nameChars - suffix.length)
      .join('')
      .trimEnd()}${suffix}`;
    if (fleet.idOfName(nodeKey.type, name) === undefined) return name;
  }
}
