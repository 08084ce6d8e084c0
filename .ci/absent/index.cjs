throw new Error('this package is left out: package.json says which, under "overrides"')
