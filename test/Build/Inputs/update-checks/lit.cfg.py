# A suite that is copied to where its tests can be written anew.
import os

import lit.formats

config.name = "stale"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".stale"]
config.environment["PATH"] = os.pathsep.join([lit_config.params["first-on-path"], os.environ["PATH"]])
