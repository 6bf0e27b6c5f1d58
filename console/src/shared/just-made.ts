/**
 * What was made a moment ago, where the answer to that has what no other answer has, such as a secret: the form leads to the page of the
 * resource, which shows it. It is held in memory until that page takes it, and is in no address and no cache.
 */
import { useEffect, useState } from 'react';

let made: { readonly id: string } | undefined;

/** Call it before the page of the resource is gone to. */
export function keepForItsPage(resource: { readonly id: string }): void {
  made = resource;
}

/** @returns undefined where the page was not come to from its form */
export function useJustMade<M extends { readonly id: string }>(id: string): M | undefined {
  const [taken] = useState(() => (made?.id === id ? (made as M) : undefined));
  useEffect(() => {
    made = undefined;
  }, []);
  return taken;
}
