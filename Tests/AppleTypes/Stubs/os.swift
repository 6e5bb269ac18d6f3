// swift-format-ignore-file
public func os_proc_available_memory() -> Int { fatalError() }
