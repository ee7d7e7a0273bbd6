// Distributed logistic regression, written as a typical application of ps-lite: one program for all roles.
//
//     paramo run -s 2 -w 2 -- ./lr train.libsvm test.libsvm ftrl 5
//
// Workers read every NumWorkers()-th row of the training file. After each epoch worker 0 prints the log-loss
// of its rows; at the end it prints log-loss and accuracy on the test file. Exit code 2: wrong usage.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server.h"
#include "worker.h"

static void Report(const char *what, const lr::Quality &q)
{
    const double rows = static_cast<double>(q.rows);
    std::printf("%s: %zu rows, log-loss %.4f, accuracy %.4f\n", what, q.rows, q.loss / rows,
                static_cast<double>(q.right) / rows);
    std::fflush(stdout);
}

static void Train(const std::string &train, const std::string &test, int epochs)
{
    const int block = 500, threads = 2;
    std::vector<lr::Row> rows = lr::ReadRows(train, ps::MyRank(), ps::NumWorkers());
    lr::Worker worker(block, threads);
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        lr::Quality q = worker.Pass(rows, true);
        if (ps::MyRank() == 0)
            Report(("epoch " + std::to_string(epoch)).c_str(), q);
    }
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup); // all have pushed their last gradients
    if (ps::MyRank() == 0)
        Report("test", worker.Pass(lr::ReadRows(test, 0, 1), false));
}

int main(int argc, char *argv[])
{
    const std::string optimizer = argc > 3 ? argv[3] : "ftrl";
    if (argc < 3 || (optimizer != "sgd" && optimizer != "ftrl")) {
        std::fprintf(stderr, "usage: %s TRAIN TEST [sgd|ftrl] [EPOCHS]\n", argv[0]);
        return 2;
    }
    lr::Server *server = ps::IsServer() ? new lr::Server(optimizer) : nullptr;
    ps::Start(0, argv[0]);
    if (ps::IsWorker())
        Train(argv[1], argv[2], argc > 4 ? std::atoi(argv[4]) : 3);
    ps::Finalize(0, true);
    delete server;
    return 0;
}
