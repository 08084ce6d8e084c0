throw new Error('this package is left out: ".ci/absent" has an empty one of its name in its place')
