/// The transfer of one request and its response, which passes the response to an `HTTPExchange`.
protocol HTTPTransfer: Sendable {
    /// Starts the transfer on another thread; call it once.
    func start()
    /// Ends the transfer soon, without waiting.
    func cancel()
}
