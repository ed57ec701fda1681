// Writes numbers and times for people. Unknown numbers are null.

export const dash = '–';

export function count(n) {
  return n === null ? dash : Math.round(n).toLocaleString('en');
}

export function milliseconds(n) {
  if (n === null) return dash;
  return (n < 10 ? n.toFixed(1) : n.toFixed(0)) + ' ms';
}

export function times(n) {
  return n === null ? dash : n.toFixed(2) + '×';
}

export function percent(share) {
  return (100 * share).toFixed(share < 0.1 ? 2 : 1) + ' %';
}

// duration returns seconds as one or two units.
export function duration(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 60) return seconds + ' s';
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 10 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : minutes + ' min';
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : hours + ' h';
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : days + ' d';
}

// age returns how old something is.
export function age(seconds) {
  if (seconds === null) return 'never';
  return seconds < 10 ? seconds.toFixed(1) + ' s ago' : duration(seconds) + ' ago';
}

// relative returns a time in Unix seconds as seen from now.
export function relative(at, now) {
  return at >= now ? 'in ' + duration(at - now) : duration(now - at) + ' ago';
}

export function clock(seconds, withSeconds = false) {
  const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  if (withSeconds) options.second = '2-digit';
  return new Date(1000 * seconds).toLocaleTimeString('en', options);
}

// day returns the weekday of a time.
export function day(seconds) {
  return new Date(1000 * seconds).toLocaleDateString('en', { weekday: 'short' });
}

export function date(seconds) {
  return new Date(1000 * seconds).toLocaleString();
}
