# Sent to Slicer once per connection: turns the helper's files into a package in `sys.modules`, so that nothing has to
# be installed there. The two marked literals are filled in by the program.
def install(files, version):
    import builtins
    import json
    import linecache
    import sys
    import types

    sources = json.loads(files)
    package = types.ModuleType("slicer_ai_agent_helper")
    package.__path__ = []
    package.VERSION = version
    # Our own copy of Python's functions: code that replaces `len` must not reach what guards it.
    own = dict(vars(builtins))
    # The old one goes only when the new one is whole: a half-built helper must not answer.
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == package.__name__}
    try:
        sys.modules[package.__name__] = package
        for name, source in sources.items():
            full = package.__name__ + "." + name
            filename = "<" + full + ">"
            module = types.ModuleType(full)
            module.__package__ = package.__name__
            module.__dict__["__builtins__"] = own
            sys.modules[full] = module
            linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
            exec(compile(source, filename, "exec"), module.__dict__)
            setattr(package, name, module)
        package.protect.seal(package)
    except BaseException as error:
        for name in list(sys.modules):
            if name.partition(".")[0] == package.__name__:
                del sys.modules[name]
        sys.modules.update(kept)
        return {"helper": "failed", "message": type(error).__name__ + ": " + str(error)}
    return {"helper": "ready", "version": version}


__execResult = install(@FILES@, @VERSION@)
