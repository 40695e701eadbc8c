kafka_bootstrap_servers = "kafka.dev.example.com:9092"
userid                  = "User_6"
