/**
 * The words for what changes by itself: the status of a node, the health of a chain and of an upstream, the time that a
 * certificate has left; which of them are well, and which are worse. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
export const statusTypes = ['node', 'l4_upstream', 'l4_chain', 'credential'] as const;
/** In the order in which changes are written when there are many. */
export type StatusType = (typeof statusTypes)[number];

export type StatusKey = {
  readonly type: StatusType;
  readonly id: string;
};

export const keyText = ({ type, id }: StatusKey): string => `${type}/${id}`;

interface Words {
  /** The status of a resource without a fact. */
  readonly implied: string;
  /** Ends an incident. */
  readonly well: readonly string[];
  /** Told, but no incident. */
  readonly warned: readonly string[];
  /** Begins an incident; the worst last. */
  readonly bad: readonly string[];
}

const words: { readonly [T in StatusType]: Words } = {
  node: { implied: 'pending', well: ['online'], warned: [], bad: ['offline'] },
  l4_chain: { implied: 'ok', well: ['ok'], warned: [], bad: ['degraded', 'down'] },
  l4_upstream: { implied: 'healthy', well: ['healthy'], warned: [], bad: ['unhealthy'] },
  credential: { implied: 'valid', well: ['valid'], warned: ['30_days', '7_days', '1_day'], bad: ['ended'] },
};

/** The statuses that facts tell, which the filter of a webhook may name. */
export const toldStatuses = statusTypes.flatMap((type) => {
  const { implied, well, warned, bad } = words[type];
  return [...well.filter((status) => type !== 'credential' || status !== implied), ...warned, ...bad];
});

export const impliedStatus = (type: StatusType): string => words[type].implied;

export const isBad = (type: StatusType, status: string): boolean => words[type].bad.includes(status);

/** Whether a change to it is told: not to `pending`, `unknown` or `disabled`, nor to a certificate that is valid again. */
export const isTold = (type: StatusType, status: string): boolean =>
  isBad(type, status) ||
  words[type].warned.includes(status) ||
  (type !== 'credential' && words[type].well.includes(status));

export function worseOf(type: StatusType, a: string, b: string): string {
  const { bad } = words[type];
  return bad.indexOf(b) > bad.indexOf(a) ? b : a;
}
