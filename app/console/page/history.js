// The decisions of a pool over the last hour, as far as the page needs them.

const span = 3600;
// Beyond fine seconds, one decision in coarse seconds is kept.
const fine = 600, coarse = 10;

export class History {
  constructor() {
    this.decisions = [];
    this.thinned = 0;
  }

  get last() {
    return this.decisions.at(-1);
  }

  // query returns the parameters of the next request: all at first, then what is new.
  query() {
    if (!this.last) return 'terms=false&inputs=false&limit=1000&step=5s';
    return `terms=false&inputs=false&limit=1000&step=1s&since=${this.last.time.toFixed(3)}`;
  }

  add(decisions) {
    this.decisions.push(...decisions);
    const now = this.last?.time ?? 0;
    if (now - this.thinned < 60) return;
    this.thinned = now;
    let kept = -Infinity;
    this.decisions = this.decisions.filter((d) => {
      if (d.time < now - span) return false;
      if (d.time < now - fine && d.time - kept < coarse) return false;
      kept = d.time;
      return true;
    });
  }

  // runner returns pairs of a time and the runner's part of the decision.
  runner(name) {
    return this.decisions.map((d) => [d, d.runners.find((r) => r.name === name)]);
  }
}
