/** What the service said, as a sentence. Pure. */
import type { Refusal } from '../api/client.js';
import { text } from './ui.text.js';

/** The sentence of a refusal with its request id. */
export function sentenceOf({ sentence, requestId }: Pick<Refusal, 'sentence' | 'requestId'>): string {
  const [first = '', rest] = [sentence.charAt(0).toUpperCase(), sentence.slice(1)];
  return requestId === null ? `${first}${rest}.` : `${first}${rest} (${text.request} ${requestId})`;
}
