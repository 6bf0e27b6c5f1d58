/**
 * A resource that was just made, if the answer has something that no later answer has, such as a secret: the form leads
 * to the page of the resource, which shows it. It is held in memory until that page takes it, and is in no address and
 * no cache.
 */
import { useEffect, useState } from 'react';

let made: { readonly id: string } | undefined;

/** Call it before going to the page of the resource. */
export function keepForItsPage(resource: { readonly id: string }): void {
  made = resource;
}

/** @returns undefined if the page was not reached from its form */
export function useJustMade<M extends { readonly id: string }>(id: string): M | undefined {
  const [taken] = useState(() => (made?.id === id ? (made as M) : undefined));
  useEffect(() => {
    made = undefined;
  }, []);
  return taken;
}
