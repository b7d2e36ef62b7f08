// What everything that waits is given.

// within is a promise's result, or an error once the time is over.
export function within(milliseconds, promise, what = 'it') {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${milliseconds} ms`)), milliseconds)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
