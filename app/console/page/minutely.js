// Refreshes a section once a minute while somebody sees the page, and at once when somebody looks again.

export async function minutely(refresh) {
  let wake = () => {};
  document.addEventListener('visibilitychange', () => wake());
  for (;;) {
    if (!document.hidden) await refresh().catch((error) => console.debug(error));
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, 60_000);
    });
  }
}
