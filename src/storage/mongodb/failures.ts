/**
 * Interprets the driver's errors, and does the writes for which an error can be an answer. `../answer-unavailable.ts`
 * turns all other errors into the port's answers.
 */
import { MongoBulkWriteError, MongoServerError, type Collection, type Filter } from 'mongodb';
import { StoreAccessError, field, textsOf, tlsError } from '../store-access.js';

const duplicateKey = 11_000;
const namespaceNotFound = 26;

const hasCode = (error: unknown, code: number): boolean => error instanceof MongoServerError && error.code === code;

const variable = 'SVC_MONGODB_URL';

/**
 * A fault that an operator must correct before the server can be used; undefined for a server that is merely away. When
 * no server is found in time, the error's text names the last reason.
 */
export function troubleOf(error: unknown): StoreAccessError | undefined {
  const text = textsOf(error);
  const cause = field(error, 'cause') ?? error;
  const because = (sentence: string): StoreAccessError => new StoreAccessError(sentence, cause);
  if (/Authentication failed|auth(entication)? fail|bad auth/i.test(text)) {
    return because(`MongoDB does not accept the user name or password in ${variable}: correct one of the two sides`);
  }
  if (/not authorized on|requires authentication|not allowed to do action/i.test(text)) {
    return because(`the user in ${variable} has too few permissions in MongoDB: give it readWrite on the database`);
  }
  const [, code] = /(E[A-Z]+): [^,]*, (?:open|read)/.exec(text) ?? [];
  if (code !== undefined) {
    return because(`a file that ${variable} names cannot be read (${code}): correct the path, or its permissions`);
  }
  const servers = field(field(cause, 'reason'), 'servers');
  // The driver drops each server that is in another set, or in none.
  if (servers instanceof Map && servers.size === 0) {
    return because(`no server in ${variable} is in the replica set that it names: correct replicaSet, or the hosts`);
  }
  return tlsError(error, { name: 'MongoDB', variable });
}

export const isMissing = (error: unknown): boolean => hasCode(error, namespaceNotFound);

/**
 * Replaces the document that the filter finds, or inserts it.
 * @param filter contains the document's id, and may contain further conditions
 * @returns false if a document with this id exists that the filter did not match, perhaps inserted meanwhile
 */
export async function replaceOrInsert<T extends { readonly _id: string }>(
  documents: Collection<T>,
  filter: Filter<T>,
  document: T,
): Promise<boolean> {
  try {
    await documents.replaceOne(filter, document, { upsert: true });
    return true;
  } catch (error) {
    if (hasCode(error, duplicateKey)) return false;
    throw error;
  }
}

/**
 * @returns the indexes of the documents that an unordered insert left out, if all of them already existed
 * @throws the error itself in any other case
 */
export function duplicatesIn(error: unknown): readonly number[] {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  // A write that a majority has not confirmed is a failure too.
  const others = error.result.getWriteConcernError() !== undefined || failures.length === 0;
  if (others || failures.some(({ code }) => code !== duplicateKey)) throw error;
  return failures.map(({ index }) => index);
}
