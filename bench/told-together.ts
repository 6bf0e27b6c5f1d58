/** Events of a child process go out together, because a message for each would cost both processes more than the agents. */
const tellEveryMs = 5;

/** @param tell sends all events since the last call */
export function toldTogether<T>(tell: (events: readonly T[]) => void): (event: T) => void {
  let unsent: T[] = [];
  return (event) => {
    unsent.push(event);
    if (unsent.length > 1) return;
    setTimeout(() => {
      tell(unsent);
      unsent = [];
    }, tellEveryMs);
  };
}
